import Foundation
import Holdfast
import HoldfastModelFile

/// The bow ties in a store.
struct Wardrobe {
  private let context: ManagedObjectContext

  /// Opens a store with the model from Xcode's file, and adds the samples if the store is empty.
  init(_ store: StoreDescription) throws {
    let model = try ManagedObjectModel(contentsOf: Bundle.module.bundlePath + "/BowTies.xcdatamodeld")
    let coordinator = try PersistentStoreCoordinator(
      model: model, transformers: ["ColorTransformer": CodableTransformer<Color>()], store: store)
    context = try ManagedObjectContext(coordinator: coordinator, classes: [BowTie.self])
    if try context.count(BowTie.self) == 0 { try importSamples() }
  }

  private func importSamples() throws {
    let file = Bundle.module.bundleURL.appendingPathComponent("SampleData.plist")
    for sample in try SampleData.read(file) {
      let tie = context.insert(BowTie.self)
      tie.id = sample.id
      tie.name = sample.name
      tie.searchKey = sample.searchKey
      tie.rating = sample.rating
      tie.timesWorn = sample.timesWorn
      tie.isFavorite = sample.isFavorite
      tie.lastWorn = sample.lastWorn
      tie.photoData = sample.photo
      tie.tintColor = sample.tintColor
      tie.url = sample.url
    }
    try context.save()
  }

  /// All bow ties, sorted by name.
  func ties() throws -> [BowTie] {
    try context.fetch(BowTie.self, sortedBy: \.name)
  }

  /// The bow tie with a search key.
  func tie(_ key: String) throws -> BowTie {
    guard let tie = try context.fetchOne(BowTie.self, where: { $0.searchKey == key }) else { throw NoSuchTie(key: key) }
    return tie
  }

  /// Records that a tie is worn.
  func wear(_ tie: BowTie, at date: Date) throws {
    tie.timesWorn += 1
    tie.lastWorn = date
    try context.save()
  }

  /// Rates a tie.
  ///
  /// - Returns: nil if the rating is saved. If the model refuses it, a sentence for the user and Core Data's error number.
  func rate(_ tie: BowTie, _ rating: Double) throws -> (sentence: String, number: Int)? {
    tie.rating = rating
    do {
      try context.save()
      return nil
    } catch let error as PersistenceError where error.property == "rating" {
      context.rollback()
      return (error.userMessage(), error.coreDataCode)
    }
  }
}

/// No bow tie has the search key.
struct NoSuchTie: Error, CustomStringConvertible {
  let key: String
  var description: String { "Bow tie \(key) doesn't exist. The command list prints all keys." }
}
