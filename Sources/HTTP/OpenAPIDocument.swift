// Settle
// SPDX-License-Identifier: Apache-2.0

/// The OpenAPI 3.1 document of this API, embedded in the binary.
package enum OpenAPIDocument {
  package static var bytes: [UInt8] { PackageResources.openapi_json }
}
