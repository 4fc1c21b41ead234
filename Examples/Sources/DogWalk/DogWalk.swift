import ExampleSupport
import Holdfast

/// Keeps a diary of one dog's walks.
@main enum DogWalk {
  static let usage = """
    A diary of the walks of the dog Fido.

    Usage: DogWalk --store memory|json|xml|binary|sqlite [--at PATH] COMMAND

      add [--date DATE]  adds a walk: now, or at a time such as 2026-05-04T07:30:00Z
      list               prints the time of every walk, newest last
      delete INDEX       deletes the walk on a line of the list, numbered from 1

    Times are ISO 8601, printed in UTC. A missing file is created; a memory store needs no PATH.
    """

  static func main() {
    Command.run(usage: usage) { arguments in
      let place = try StoreOptions(&arguments)
      switch try arguments.word("A command") {
      case "add":
        let date = try arguments.option("--date").map(WalkTime.parse) ?? .now
        try arguments.finish()
        try Diary(place.description()).addWalk(at: date)
      case "list":
        try arguments.finish()
        for time in try Diary(place.description()).walkTimes() { print(time) }
      case "delete":
        let index = try arguments.number("INDEX")
        try arguments.finish()
        guard index >= 1 else { throw UsageError("Walk numbers start at 1, so \(index) isn't valid.") }
        try Diary(place.description()).deleteWalk(index)
      case let other: throw UsageError("Unknown command '\(other)'.")
      }
    }
  }
}
