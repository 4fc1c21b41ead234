import Foundation
import Holdfast

/// A sequence of saves. Each changes objects of every entity, to-one and many-to-many links, inserts a ship and deletes one.
///
/// The contents of the store depend only on the number of saves, so any missing part of a save is detected.
enum Voyage {
  static let berths = 3
  static let routes = 3
  /// The number of saves after which a ship is deleted.
  static let life = 10
  /// The number of saves after which a ship changes its berth.
  static let move = 4

  private static let plausible = 1...1_000_000

  /// Makes the next save.
  @discardableResult static func saveNext(_ context: ManagedObjectContext) throws -> Int {
    let journal = try changeNext(context)
    try context.save()
    return journal.saves
  }

  /// Makes the changes of the next save.
  static func changeNext(_ context: ManagedObjectContext) throws -> Journal {
    let journal = try context.fetch(FetchRequest<Journal>()).first ?? begin(context)
    let next = journal.saves &+ 1
    let berths = try context.fetch(FetchRequest<Berth>(sortedBy: [.ascending(\.number)]))
    let routes = try context.fetch(FetchRequest<Route>(sortedBy: [.ascending(\.number)]))
    // The store may be damaged.
    guard berths.count == Voyage.berths, routes.count == Voyage.routes, plausible.contains(next) else {
      throw PersistenceError(.missingObject, reason: "Berths, routes or the number of saves are missing.")
    }
    journal.saves = next
    let ship = context.insert(Ship.self)
    ship.name = name(next)
    ship.number = Int64(next)
    ship.log = log(next)
    enter(ship, berths[next % Voyage.berths])
    for route in [routes[next % Voyage.routes], routes[(next + 1) % Voyage.routes]] {
      ship.routes.insert(route)
      route.count &+= 1
    }
    if let moving = try find(next - move, context) {
      moving.berth?.count &-= 1
      enter(moving, berths[(next - move + 1) % Voyage.berths])
    }
    if let old = try find(next - life, context) {
      old.berth?.count &-= 1
      for route in old.routes { route.count &-= 1 }
      context.delete(old)
    }
    return journal
  }

  private static func begin(_ context: ManagedObjectContext) -> Journal {
    for number in 0..<berths { context.insert(Berth.self).number = number }
    for number in 0..<routes { context.insert(Route.self).number = number }
    for berth in context.insertedObjects.compactMap({ $0 as? Berth }) { berth.count = 0 }
    for route in context.insertedObjects.compactMap({ $0 as? Route }) { route.count = 0 }
    return context.insert(Journal.self)
  }

  private static func enter(_ ship: Ship, _ berth: Berth) {
    ship.berth = berth
    berth.count &+= 1
  }

  private static func find(_ number: Int, _ context: ManagedObjectContext) throws -> Ship? {
    try context.fetch(FetchRequest<Ship> { $0.number == Int64(number) }).first
  }

  private static func name(_ number: Int) -> String { "Ship \(number)" }
  /// A text whose length varies, so that some rows use overflow pages.
  private static func log(_ number: Int) -> String {
    String(repeating: "Day \(number). ", count: number % 7 == 0 ? 1500 : max(0, number % 40))
  }

  // MARK: Checks

  /// The number of saves in the store, and a description of the first fault; nil if there is none.
  static func check(_ context: ManagedObjectContext) throws -> (saves: Int, fault: String?) {
    let journals = try context.fetch(FetchRequest<Journal>())
    if journals.isEmpty { return (0, try context.count(for: FetchRequest<Ship>()) == 0 ? nil : "Ships without a journal.") }
    let saves = journals[0].saves
    if !plausible.contains(saves) { return (saves, "\(saves) saves") }
    let expected = expected(saves), found = try found(context)
    return (
      saves,
      journals.count != 1 ? "\(journals.count) journals" : found == expected ? nil : "After \(saves) saves:\n\(found)\nnot\n\(expected)"
    )
  }

  /// Every object with its links as a line of text, sorted.
  private static func found(_ context: ManagedObjectContext) throws -> [String] {
    var lines: [String] = []
    for ship in try context.fetch(FetchRequest<Ship>()) {
      let routes = ship.routes.map { String($0.number) }.sorted().joined(separator: ",")
      lines.append(
        "\(ship.name) \(ship.number ?? -1) \(ship.log?.utf8.count ?? -1) \(ship.log == log(Int(ship.number ?? -1))) at \(ship.berth?.number ?? -1) on \(routes)"
      )
    }
    for berth in try context.fetch(FetchRequest<Berth>()) { lines.append("Berth \(berth.number) has \(berth.count), \(berth.ships.count)") }
    for route in try context.fetch(FetchRequest<Route>()) { lines.append("Route \(route.number) has \(route.count), \(route.ships.count)") }
    return lines.sorted()
  }

  private static func expected(_ saves: Int) -> [String] {
    let ships = max(1, saves - life + 1)...saves
    var atBerth = Array(repeating: 0, count: berths), onRoute = Array(repeating: 0, count: routes), lines: [String] = []
    for number in ships {
      let berth = (saves - number >= move ? number + 1 : number) % berths
      let sailed = [number % routes, (number + 1) % routes]
      atBerth[berth] += 1
      for route in sailed { onRoute[route] += 1 }
      lines.append(
        "\(name(number)) \(number) \(log(number).utf8.count) true at \(berth) on \(sailed.sorted().map(String.init).joined(separator: ","))"
      )
    }
    for (number, count) in atBerth.enumerated() { lines.append("Berth \(number) has \(count), \(count)") }
    for (number, count) in onRoute.enumerated() { lines.append("Route \(number) has \(count), \(count)") }
    return lines.sorted()
  }
}
