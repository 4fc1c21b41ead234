import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

enum XMLFileFormat: WholeFileFormat {
  static let fileName = "store.xml"
  static var defaultOptions: XMLStoreOptions { XMLStoreOptions() }
  static var unverifiedOptions: XMLStoreOptions { XMLStoreOptions(wholeFile: WholeFileOptions(allowsUnverified: true)) }
  static var model: ManagedObjectModel { Library.model }

  static func description(at path: String, isReadOnly: Bool, options: XMLStoreOptions) -> StoreDescription {
    .xml(at: path, isReadOnly: isReadOnly, options: options)
  }
}

typealias XMLFile = WholeFileFixture<XMLFileFormat>

extension WholeFileFixture where Format == XMLFileFormat {
  /// Updates the digest of a file that was edited by hand.
  static func sealed(_ text: String) -> [UInt8] {
    var body = text
    if let end = body.range(of: "<!-- xxh64:", options: .backwards) { body = String(body[..<end.lowerBound]) }
    let digest = Array(body.utf8).withUnsafeBytes { ContentDigest.value(of: $0) }
    let digits = String(digest, radix: 16)
    return Array((body + "<!-- xxh64:" + String(repeating: "0", count: 16 - digits.count) + digits + " -->\n").utf8)
  }

  /// Edits the text of the file and updates its digest.
  func edit(_ old: String, _ new: String) throws {
    let text = try text()
    let place = try #require(text.range(of: old), "\(old) is not in\n\(text)")
    try write(Self.sealed(text.replacingCharacters(in: place, with: new)))
  }
}

/// Books with every kind of attribute and relationship.
enum Library {
  static let model = Bookshelf.model(adding: [AttributeDescription("seeAlso", .objectID, isOptional: true)])

  /// Saves a small graph with every kind of value and link, and text that XML must escape.
  static func fill(_ context: ManagedObjectContext) throws {
    let books = try Bookshelf.fill(context, text: "quiet <\"please\"> & \\u\n\t\r\u{1F4DA}\u{FFFE}\u{1}") { book, number in
      try book.setValue(.date(318_303_001.848 + Double(number)), forKey: "printed")
      try book.setValue(.data(Data((0...UInt8(60 * number)).map { $0 })), forKey: "cover")
      try book.setValue(.uri("https://example.org/?a=\(number)&b"), forKey: "page")
    }
    try books[1].setValue(.objectID(books[0].objectID), forKey: "seeAlso")
    try context.save()
  }

  /// The contents of a context's store as text that doesn't depend on the keys' order in the file.
  static func contents(_ context: ManagedObjectContext) throws -> [String] {
    var lines: [String] = []
    for entity in context.persistentStoreCoordinator.model.entities where !entity.isAbstract {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)) where object.entity.name == entity.name {
        let attributes = try entity.attributes.map { "\($0.name)=\(try object.value(forKey: $0.name))" }
        let toOne = try entity.relationships.filter { !$0.isToMany }.map { "\($0.name)=\(try object.value(forKey: $0.name))" }
        let toMany = try entity.toManyRelationships.map { relationship in
          relationship.isOrdered
            ? "\(relationship.name)=\(try object.ordered(forKey: relationship.name).map(\.objectID.key))"
            : "\(relationship.name)=\(try object.toMany(forKey: relationship.name).map(\.objectID.key).sorted())"
        }
        lines.append("\(entity.name) \(object.objectID.key): \((attributes + toOne + toMany).joined(separator: ", "))")
      }
    }
    return lines.sorted()
  }
}
