// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// `bench WORKLOAD KEYS ROUNDS`: runs one workload and prints its figures, as one JSON object.
@main
enum Bench {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let keys = Int(arguments[2]), let rounds = Int(arguments[3]),
      keys > 0, rounds > 0, let figures = run(arguments[1], keys: keys, rounds: rounds)
    else {
      let usage = """
        usage: bench enqueue|burst|flush|memory|queue|tasks|values|numbers|machine|keyed|idle KEYS ROUNDS
               bench dispatch|async|sleep KEYS ROUNDS
               bench lateness CHANGES MILLISECONDS

        """
      _ = unsafe write(STDERR_FILENO, usage, usage.utf8.count)
      exit(64)
    }
    print("{" + figures.map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "}")
  }

  private typealias Figures = KeyValuePairs<String, UInt64>

  /// `nil` for a workload that does not exist.
  private static func run(_ workload: String, keys: Int, rounds: Int) -> Figures? {
    let names = Names(count: workload == "lateness" ? 1 : keys)
    switch workload {
    case "enqueue", "burst", "flush": return core(workload, names, rounds)
    case "memory":
      _ = CoreWorkload(names: Names(count: 10))  // Brings the code in.
      let before = Meter.resident
      let core = CoreWorkload(names: names)
      let bytes = Meter.resident - before
      return ["bytes": UInt64(max(bytes, 0)), "runs": UInt64(core.runs)]
    case "queue", "tasks":
      let texts = names.order.map { names.text(Int($0)) }
      let cpu = cpu {
        workload == "queue"
          ? QueueWorkload.queue(names: texts, bursts: rounds)
          : QueueWorkload.core(names: texts, bursts: rounds)
      }
      return ["cpu_ns": cpu, "runs": UInt64(QueueWorkload.runCount)]
    case "values", "numbers":
      let texts = names.order.map { names.text(Int($0)) }
      let cpu = cpu {
        workload == "values"
          ? ValueWorkload.queue(names: texts, bursts: rounds)
          : ValueWorkload.core(names: texts, bursts: rounds)
      }
      return ["cpu_ns": cpu, "runs": UInt64(ValueWorkload.runCount)]
    case "async", "sleep":
      let texts = names.order.map { names.text(Int($0)) }
      let cpu = cpu {
        workload == "async"
          ? AsyncWorkload.queue(names: texts, bursts: rounds)
          : AsyncWorkload.sleep(names: texts, bursts: rounds)
      }
      return ["cpu_ns": cpu, "runs": UInt64(AsyncWorkload.runCount)]
    case "machine":
      var machine = MachineWorkload(names: names)
      let cpu = cpu { machine.change(rounds: rounds) }
      return ["cpu_ns": cpu, "changes": machine.changes]
    case "keyed":
      var core = KeyedWorkload(names: names)
      let cpu = cpu { core.change(rounds: rounds) }
      return ["cpu_ns": cpu, "pending": UInt64(core.pending)]
    case "idle":
      let texts = names.order.map { names.text(Int($0)) }
      let idle = QueueWorkload.idle(names: texts, seconds: UInt32(rounds))
      return ["wake_ups": UInt64(idle.wakeUps), "cpu_ns": idle.cpu]
    case "dispatch":
      // Long enough that all of a burst falls into one quiet period.
      let delay = DispatchTimeInterval.milliseconds(keys > 10_000 ? 10_000 : 100)
      let cpu = cpu {
        DispatchWorkload.burst(keys: keys, bursts: rounds, delay: delay, order: names.order)
      }
      return ["cpu_ns": cpu, "runs": UInt64(DispatchWorkload.runCount)]
    case "lateness": return lateness(changes: keys, length: rounds)
    default: return nil
    }
  }

  private static func core(_ workload: String, _ names: Names, _ rounds: Int) -> Figures {
    var core = CoreWorkload(names: names)
    let cpu = cpu {
      switch workload {
      case "enqueue": core.enqueue(rounds: rounds)
      case "burst": core.burst(rounds: rounds)
      default: break
      }
    }
    if workload == "flush" {
      // The changes that are flushed are not counted.
      let flushing = core.flush(rounds: rounds)
      return ["cpu_ns": flushing, "runs": UInt64(core.runs)]
    }
    core.settle()
    return ["cpu_ns": cpu, "runs": UInt64(core.runs), "checksum": core.checksum]
  }

  private static func lateness(changes: Int, length: Int) -> Figures? {
    guard let workload = try? LatenessWorkload(changes: changes, length: length) else { return nil }
    let before = Meter.cpu
    let late = workload.lateness()
    let spent = Meter.cpu - before
    guard let last = late.last else { return nil }
    return [
      "early": UInt64(workload.early), "cpu_ns": spent, "count": UInt64(late.count),
      "p50": late[late.count / 2], "p99": late[late.count * 99 / 100], "max": last,
    ]
  }

  private static func cpu(of work: () -> Void) -> UInt64 {
    let start = Meter.cpu
    work()
    return Meter.cpu - start
  }
}
