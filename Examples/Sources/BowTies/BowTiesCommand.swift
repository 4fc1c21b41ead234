import ExampleSupport
import Foundation
import Holdfast

/// Keeps a list of bow ties, with their looks, ratings and how often they are worn.
@main enum BowTiesCommand {
  static let usage = """
    A wardrobe of bow ties.

    Usage: BowTies --store memory|json|xml|binary|sqlite [--at PATH] COMMAND

      list                     prints every bow tie with its key
      show KEY                 prints all attributes of a bow tie
      wear KEY [--date DATE]   records that it is worn: now, or at a time such as 2026-05-04T19:30:00Z
      rate KEY RATING          rates it from 0 to 5; asks again if the rating is refused

    A new store contains four bow ties. A missing file is created; a memory store needs no PATH.
    """

  static func main() {
    Command.run(usage: usage) { arguments in
      let place = try StoreOptions(&arguments)
      let command = try arguments.word("A command")
      switch command {
      case "list":
        try arguments.finish()
        for tie in try Wardrobe(place.description()).ties() {
          print("\(tie.searchKey)  \(tie.name)\(tie.isFavorite ? ", a favourite" : "")")
        }
      case "show":
        let key = try arguments.word("KEY")
        try arguments.finish()
        print(try TieText(Wardrobe(place.description()).tie(key)))
      case "wear":
        let key = try arguments.word("KEY"), date = try arguments.option("--date").map(parse) ?? Date()
        try arguments.finish()
        let wardrobe = try Wardrobe(place.description())
        try wardrobe.wear(wardrobe.tie(key), at: date)
      case "rate":
        let key = try arguments.word("KEY"), rating = try arguments.word("RATING")
        try arguments.finish()
        try rate(Wardrobe(place.description()), key, rating)
      case let other: throw UsageError("Unknown command '\(other)'.")
      }
    }
  }

  /// Rates a tie, and asks again until the rating is accepted or the input ends.
  private static func rate(_ wardrobe: Wardrobe, _ key: String, _ first: String) throws {
    let tie = try wardrobe.tie(key)
    var answer: String? = first
    while let text = answer {
      if let rating = Double(text) {
        guard let refusal = try wardrobe.rate(tie, rating) else { return print("\(tie.name) is rated \(tie.rating).") }
        print("\(refusal.sentence) [\(refusal.number)]")
      } else {
        print("'\(text)' isn't a number.")
      }
      print("Another rating?")
      answer = readLine()
    }
    print("\(tie.name) stays at \(tie.rating).")
  }

  private static func parse(_ text: String) throws -> Date {
    guard let date = try? Date(text, strategy: .iso8601) else {
      throw UsageError("Give a date and a time in UTC, such as 2026-05-04T19:30:00Z.")
    }
    return date
  }
}

/// The attributes of a tie as lines of text.
struct TieText: CustomStringConvertible {
  let description: String

  init(_ tie: BowTie) {
    let worn = tie.lastWorn.map { ", last on \($0.formatted(.iso8601))" } ?? ""
    description = """
      \(tie.name) (\(tie.searchKey))\(tie.isFavorite ? ", a favourite" : "")
        rated \(tie.rating), worn \(tie.timesWorn) \(tie.timesWorn == 1 ? "time" : "times")\(worn)
        colour \(tie.tintColor.map { "\($0)" } ?? "unknown"), photo of \(tie.photoData?.count ?? 0) bytes
        \(tie.url?.absoluteString ?? "no address")
        \(tie.id)
      """
  }
}
