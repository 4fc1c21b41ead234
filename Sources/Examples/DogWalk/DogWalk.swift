import ArgumentParser
import Logging

/// Keeps a diary of the walks of one dog.
@main struct DogWalk: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "DogWalk", abstract: "A diary of the walks of the dog Fido.",
    discussion: "Times are ISO 8601 in UTC. Walks are listed, and counted from 1, in the order of their times.",
    subcommands: [Add.self, List.self, Delete.self])

  @OptionGroup var place: StoreOptions

  /// What fails is told by one sentence, so what the stores log about it stays unsaid.
  static func main() {
    LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
    main(nil)
  }
}

extension DogWalk {
  struct Add: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Records a walk.")
    @OptionGroup var place: StoreOptions
    @Option(help: "When it was, as 2026-05-04T07:30:00Z; now unless said.", transform: WalkTime.parse) var date: WalkTime = .now

    func run() throws {
      let diary = try Diary(place.description)
      try diary.addWalk(at: date)
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints the time of every walk, the newest last.")
    @OptionGroup var place: StoreOptions

    func run() throws {
      for time in try Diary(place.description).walkTimes() { print(time) }
    }
  }

  struct Delete: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Strikes out a walk.")
    @OptionGroup var place: StoreOptions
    @Argument(help: "The number of the line in the list, from 1.") var index: Int

    func validate() throws {
      guard index >= 1 else { throw ValidationError("Walks are counted from 1, so there is no walk \(index).") }
    }

    func run() throws {
      let diary = try Diary(place.description)
      try diary.deleteWalk(index)
    }
  }
}
