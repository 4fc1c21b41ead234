import Foundation
import Holdfast

/// The bow ties in a store.
struct Wardrobe {
  private let context: ManagedObjectContext

  /// Opens a store, and adds the samples if it is empty.
  init(_ store: StoreDescription) throws {
    let container = try PersistentContainer(
      for: BowTie.self, transformers: ["ColorTransformer": CodableTransformer<Color>()], store: store)
    context = container.newContext()
    if try !context.exists(BowTie.self) { try importSamples() }
  }

  private func importSamples() throws {
    let file = Bundle.module.bundleURL.appendingPathComponent("SampleData.plist")
    for sample in try SampleData.read(file) {
      // The compiler asks for the properties without a default.
      let tie = BowTie(context: context, searchKey: sample.searchKey, name: sample.name, id: sample.id)
      (tie.isFavorite, tie.rating, tie.timesWorn, tie.lastWorn) = (sample.isFavorite, sample.rating, sample.timesWorn, sample.lastWorn)
      (tie.photoData, tie.tintColor, tie.url) = (sample.photo, sample.tintColor, sample.url)
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
