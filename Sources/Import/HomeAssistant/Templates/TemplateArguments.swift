// Settle
// SPDX-License-Identifier: Apache-2.0

/// The arguments of a filter, function or method.
struct TemplateArguments {
  var positional: [Template.Expression] = []
  var named: [String: Template.Expression] = [:]
  var hasComma = false

  var isEmpty: Bool { positional.isEmpty && named.isEmpty }

  struct Values {
    var all: [TemplateValue] = []
    var named: [String: TemplateValue] = [:]

    subscript(index: Int) -> TemplateValue? { index < all.count ? all[index] : nil }

    /// An argument that is given by its name or its place.
    func named(_ name: String, _ index: Int) -> TemplateValue? { named[name] ?? self[index] }
  }

  /// Evaluates the arguments; those before `start` are undefined.
  func values(_ context: TemplateContext, after start: Int = 0) throws -> Values {
    var values = Values(all: Array(repeating: .undefined, count: min(start, positional.count)))
    for argument in positional.dropFirst(start) {
      try context.step()
      values.all.append(try context.plain(argument(context)))
    }
    for (name, argument) in named { values.named[name] = try context.plain(argument(context)) }
    return values
  }
}
