import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport

/// Ships whose logs are lists of numbers, and writers that read several of them and append to some.
struct Registers: Codable, Sendable {
  /// How a context reads.
  enum Reading: String, Codable, CaseIterable, Sendable {
    /// Each request reads the newest rows.
    case unpinned
    /// All requests of a transaction read one generation.
    case pinned
    /// As `pinned`, and the save compares the versions of all that was read.
    case comparing

    /// What the reading allows; *Conflicts and merging* says why.
    var allowed: Set<AppendHistory.Anomaly> {
      switch self {
      case .unpinned: [.readSkew, .writeSkew]
      case .pinned: [.writeSkew]
      case .comparing: []
      }
    }
  }

  /// The number of registers that a transaction chooses from.
  private static let width = 6
  /// The length of a list at which its readers continue with the next registers. So the lists stay short, and all writers use the same ones,
  /// however many transactions each of them has made.
  private static let length = 75
  /// Fewer transactions than fill the lists of so many registers.
  private static let transactionsPerWidth = 200

  let reading: Reading
  let folder: String
  let writers: Int
  let transactions: Int
  let seed: UInt64

  private var count: Int { (writers * transactions / Self.transactionsPerWidth + 2) * Self.width }

  /// Where a file store has its file.
  var path: String { folder + "/registers" }

  /// The description of a file store whose locks may be held long.
  ///
  /// - Parameter durability: That of a SQLite store. It has no effect on isolation.
  func description(_ store: FileStore, durability: SQLiteStoreOptions.Durability = .full) -> StoreDescription {
    if case .sqlite(let journal) = store {
      return .sqlite(
        at: path,
        options: SQLiteStoreOptions(
          durability: durability, journalMode: journal, busyTimeout: .seconds(3600), readerTimeout: .seconds(1e6),
          maximumSnapshots: writers, checkpointPages: 20))
    }
    return store.description(at: path, file: Inserting.options)
  }

  func fill(_ context: ManagedObjectContext) throws {
    for number in 0..<count {
      let ship = context.insert(Ship.self)
      (ship.name, ship.number) = ("Register", Int64(number))
    }
    try context.save()
  }

  /// The lists of all registers.
  func lists(_ context: ManagedObjectContext) throws -> [Int: [Int]] {
    let ships = try context.fetch(FetchRequest<Ship>())
    return Dictionary(uniqueKeysWithValues: ships.map { (Int($0.number ?? -1), Self.list($0)) })
  }

  private static func list(_ ship: Ship) -> [Int] { (ship.log ?? "").split(separator: " ").compactMap { Int($0) } }

  /// Makes the transactions of one writer.
  func run(_ context: ManagedObjectContext, writer: Int) throws -> [AppendTransaction] {
    var random = SeededGenerator(seed: seed &+ UInt64(writer)), first = 0
    if reading != .unpinned { try context.setQueryGeneration(from: .current) }
    return try (0..<transactions).map { step in
      context.reset()
      var transaction = try change(context, writer, step, first, &random)
      // All writers have read the first register before one of them saves, so there are conflicts.
      if step == 0 { try Rendezvous.wait(in: folder, process: writer, of: writers) }
      do {
        try context.save()
      } catch let error as PersistenceError where error.code == .conflict || error.code == .constraintConflict {
        transaction.isSaved = false
      }
      if transaction.reads.values.contains(where: { $0.count >= Self.length }) { first = min(first + Self.width, count - Self.width) }
      return transaction
    }
  }

  /// Makes the changes of one transaction.
  ///
  /// - Parameter first: The first register that it chooses from.
  private func change(
    _ context: ManagedObjectContext, _ writer: Int, _ step: Int, _ first: Int, _ random: inout SeededGenerator
  ) throws -> AppendTransaction {
    let number = writer * 1_000_000 + step
    let isReadOnly = step > 0 && Int.random(in: 0..<4, using: &random) == 0
    var transaction = AppendTransaction(), registers = Array(first..<first + Self.width)
    if step > 0 { registers.shuffle(using: &random) }
    for register in registers.prefix(Int.random(in: 1...3, using: &random)) {
      guard let ship = try context.fetch(FetchRequest<Ship> { $0.number == Int64(register) }).first else {
        throw PersistenceError(.missingObject, reason: "Register \(register) is missing.")
      }
      transaction.reads[register] = Self.list(ship)
      if isReadOnly { continue }
      if transaction.appends.isEmpty || Bool.random(using: &random) {
        transaction.appends[register] = number
        ship.log = [ship.log, "\(number)"].compactMap { $0 }.joined(separator: " ")
      } else if reading == .comparing {
        try context.detectConflicts(for: ship)
      }
    }
    // Some saves are refused after the store has begun them.
    if !isReadOnly, step > 0, Int.random(in: 0..<16, using: &random) == 0 {
      let double = context.insert(Ship.self)
      (double.name, double.number) = ("Double", 0)
    }
    return transaction
  }
}
