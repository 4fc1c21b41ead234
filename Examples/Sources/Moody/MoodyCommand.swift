import ExampleSupport
import Foundation
import Holdfast

/// Runs the example: two devices that share their moods.
@main enum MoodyCommand {
  static let usage = """
    Keeps the moods of two devices in sync through a small server in this process, and prints each step.

    Usage: Moody [--in FOLDER]

    The stores are files in FOLDER, which defaults to a temporary one. A later run with the same FOLDER continues with them.
    """

  static func main() {
    Command.run(usage: usage) { arguments in
      let folder = try arguments.option("--in") ?? NSTemporaryDirectory() + "moody-\(UUID().uuidString)"
      try arguments.finish()
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      for line in try lines(folder) { print(line) }
    }
  }

  static func lines(_ folder: String) throws -> [String] {
    let remote = Remote()
    let phone = try MoodSync(path: folder + "/phone.sqlite", connection: Connection(to: remote))
    let tablet = try MoodSync(path: folder + "/tablet.sqlite", connection: Connection(to: remote))
    try phone.container.withContext { context in
      let iceland = context.insert(Country.self) { ($0.code, $0.name) = (352, "Iceland") }
      iceland.continent = context.insert(Continent.self) { ($0.code, $0.name) = (10_001, "Europe") }
      for colors in ["blue grey", "green"] {
        context.insert(Mood.self) { ($0.colors, $0.country) = (colors, iceland) }
      }
      // The names of a known country and continent are those of the last run.
      context.mergePolicy = .mergeByPropertyObjectTrump
      try context.save()
    }
    try phone.synchronize()
    try tablet.synchronize()
    var lines = ["The tablet received: \(try moods(tablet))"]
    // Both change their moods before they meet again.
    try tablet.container.withContext { context in
      for mood in try context.fetch(Mood.self, where: { $0.colors == "green" }) { mood.colors = "gold" }
      try context.save()
    }
    try phone.container.withContext { context in
      for mood in try context.fetch(Mood.self, where: { $0.colors == "blue grey" }) { context.delete(mood) }
      try context.save()
    }
    for device in [tablet, phone, tablet] { try device.synchronize() }
    lines.append("The phone has: \(try moods(phone))")
    lines.append("The tablet has: \(try moods(tablet))")
    return lines
  }

  private static func moods(_ device: MoodSync) throws -> String {
    try device.container.withContext { context in
      try context.fetch(Mood.self, sortedBy: \.colors).map { "\($0.colors) in \($0.country?.name ?? "no country")" }
        .joined(separator: ", ")
    }
  }
}
