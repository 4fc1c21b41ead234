import ExampleSupport
import Holdfast

/// Keeps a diary of the walks of one dog.
@main enum DogWalk {
  static let usage = """
    A diary of the walks of the dog Fido.

    Usage: DogWalk --store memory|json|xml|binary|sqlite [--at PATH] COMMAND

      add [--date DATE]  records a walk: now, or at a time such as 2026-05-04T07:30:00Z
      list               prints the time of every walk, the newest last
      delete INDEX       strikes out a walk: the number of its line in the list, from 1

    Times are ISO 8601 in UTC. A file is made when there is none; memory needs none.
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
        guard index >= 1 else { throw UsageError("Walks are counted from 1, so there is no walk \(index).") }
        try Diary(place.description()).deleteWalk(index)
      case let other: throw UsageError("There is no command '\(other)'.")
      }
    }
  }
}
