import Foundation
import Holdfast
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore
@testable import HoldfastJSONStore

/// Reads files with and without the scanner of lines.
enum LineComparison {
  /// Reads a file.
  ///
  /// - Parameters:
  ///   - lines: Whether the scanner is used.
  ///   - limits: The options, apart from those for digests.
  ///   - model: The model of the file. Defaults to that of books.
  /// - Returns: The objects as the writer writes them, or the error with its position, and the number of bytes that yajl didn't receive.
  static func read(
    _ bytes: [UInt8], lines: Bool = true, _ limits: JSONStoreOptions = JSONStoreOptions(), model: ManagedObjectModel = Library.model
  ) -> (result: String, skipped: Int) {
    WrittenLines.$areRead.withValue(lines) {
      var skipped = 0
      do {
        let loader = TableLoader(model: model, path: "/store")
        var options = limits
        options.wholeFile.allowsUnverified = true
        let document = JSONDocumentReader(loader: loader, errors: JSONErrors(path: "/store"), options: options)
        skipped = try JSONParser(document, options: options).parse(FileReader(bytes, path: "/store"))
        return (String(decoding: try written(loader.finish(), JSONModel(model)), as: UTF8.self), skipped)
      } catch {
        return ("\(error)", skipped)
      }
    }
  }

  private static func written(_ store: LoadedStore, _ model: JSONModel) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try JSONDocumentWriter(
      image: StoreImage(header: store.header, generation: store.generation), encodedModel: Array("{}".utf8), model: model,
      links: model.written.map { WrittenLinks(store.generation, $0) }, output: TextOutput { bytes += $0 }
    ).write()
    return bytes
  }

  /// Checks that the scanner and yajl read the same objects, or report the same error at the same position.
  static func expectSame(_ bytes: [UInt8], _ comment: @autoclosure () -> String = "", model: ManagedObjectModel = Library.model) {
    let (one, other) = (read(bytes, model: model).result, read(bytes, lines: false, model: model).result)
    if one != other { Issue.record("\(comment()): \(one)\nyajl: \(other)\n\(String(decoding: bytes, as: UTF8.self))") }
  }

  /// A file with a value of every kind.
  static func text() throws -> String {
    let file = try JSONFile(), context = try file.context()
    try Bookshelf.fill(context) { book, number in try book.setValue(.int16(7), forKey: "pages") }
    try context.persistentStoreCoordinator.close()
    return try file.text()
  }

  /// A file with random values of every kind.
  static func file(_ count: Int, _ random: inout SeededGenerator) throws -> [UInt8] {
    let file = try JSONFile(), context = try file.context()
    let texts = [
      "", "a", "\"", "\\", "\u{1}\n\t\r\u{1F}", "é\u{1F4DA}", "\u{0}\u{7F}\u{2028}", "{\"$key\":1},\n",
      String(repeating: "long ", count: 40),
    ]
    try Bookshelf.fill(context, count: count, texts, &random)
    try context.persistentStoreCoordinator.close()
    return Array(try file.text().utf8)
  }
}
