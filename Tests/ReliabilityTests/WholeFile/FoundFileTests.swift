import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// Text files that another program wrote in another form.
@Suite struct FoundFileTests {
  /// Files with the same contents as a file that the store wrote, in another form.
  enum Rewriting: String, CaseIterable, CustomTestStringConvertible {
    case unchanged, descending, shuffled, comments, entitiesMixed, severalOnALine, onALineOfTheirOwn, copiesInComments
    case copiesBefore, copiesInTheType, copiesBehind, keysInReferences, byteOrderMark
    var testDescription: String { rawValue }

    /// Rewrites the lines of objects; nil if the format doesn't allow this form.
    func rewrite(_ text: String, _ store: FileStore) -> String? {
      var random = SeededGenerator("Found files, \(store), \(rawValue)")
      switch (self, store) {
      case (.unchanged, _): return text
      case (.descending, .json): return FoundText.json(text) { $0.reversed() }
      case (.descending, _): return FoundText.xml(text) { $0.reversed() }
      case (.shuffled, .json): return FoundText.json(text) { $0.shuffled(using: &random) }
      case (.shuffled, _): return FoundText.xml(text) { $0.shuffled(using: &random) }
      case (.comments, .xml): return FoundText.xml(text) { $0.flatMap { [$0, "<!-- an object -->\n"] } }
      case (.copiesInComments, .xml):
        return FoundText.xml(text) { $0.flatMap { ["<!--\n" + $0.replacing("--", with: "") + "-->\n", " " + $0] } }
      // Text that looks like objects, before and after the real ones, at the end of the first 64 KiB.
      case (.copiesBefore, .xml):
        return text.replacing("<!DOCTYPE", with: "<!--\n\(FoundText.object)\(FoundText.filler(63_500))-->\n<!DOCTYPE")
      case (.copiesBefore, .json):
        return text.replacing(
          "\"model\":{", with: "\"model\":{\"a\":[\n{\"$key\":1}\n],\"b\":\"\(FoundText.filler(80_000))\",", maxReplacements: 1)
      case (.copiesInTheType, .xml):
        return text.replacing(
          /<!DOCTYPE database SYSTEM "[^"]*"/,
          with: "<!--\(FoundText.filler(14_500))--><!DOCTYPE database SYSTEM '\n\(FoundText.object)\(FoundText.filler(49_000))'")
      case (.copiesBehind, .xml):
        let object = "<object type=\"TUG\" id=\"z900000\"></object>\n"
        return text.replacing("</database>\n", with: "</database>\n<!--\n\(object)-->\n")
      case (.byteOrderMark, .xml): return "\u{FEFF}" + text
      // A key whose last digit is a character reference looks like another key.
      case (.keysInReferences, .xml):
        return text.replacing(/\ id="z(\d+)(\d)">/) { match in
          Int.random(in: 0..<4, using: &random) > 0 ? String(match.0) : " id=\"z\(match.1)&#\(48 + (Int(match.2) ?? 0));\">"
        }
      // Half of the fleets follow all other objects, in key order.
      case (.entitiesMixed, .xml):
        return FoundText.xml(text) { objects in
          let fleets = objects.filter { $0.contains("type=\"FLEET\"") }
          let moved = Set(fleets.suffix(fleets.count / 2))
          return objects.filter { !moved.contains($0) } + fleets.suffix(fleets.count / 2)
        }
      case (.severalOnALine, .json): return text.replacing("},\n{\"$key\":", with: "},{\"$key\":")
      case (.severalOnALine, _): return text.replacing("</object>\n<object", with: "</object><object")
      case (.onALineOfTheirOwn, .json): return text.replacing("},\n{\"$key\":", with: "},\n\n{\"$key\":")
      case (.onALineOfTheirOwn, _): return text.replacing("</object>\n", with: "\n</object>\n\n")
      default: return nil
      }
    }
  }

  @Test(arguments: [FileStore.json, .xml], Rewriting.allCases)
  func aSaveAfterOpeningARewrittenFileLosesAndDuplicatesNothing(store: FileStore, rewriting: Rewriting) throws {
    let disk = SimulatedFileSystem()
    let first = try CopyingFleet.context(store, disk)
    try CopyingFleet.fill(TestTier.count(800, full: 4000), first)
    let before = try CopyingFleet.contents(first)
    try first.persistentStoreCoordinator.close()
    let text = String(decoding: disk.contents(of: "harbour") ?? [], as: UTF8.self)
    guard let rewritten = rewriting.rewrite(text, store) else { return }
    #expect((rewritten == text) == (rewriting == .unchanged))
    disk.setContents(of: "harbour", FoundText.sealed(rewritten, store))
    if rewriting == .copiesBefore || rewriting == .copiesInTheType {
      let start = try #require(rewritten.range(of: store == .json ? "\"entities\":" : "</databaseInfo>"))
      #expect(rewritten.utf8.distance(from: rewritten.startIndex, to: start.lowerBound) > 1 << 16)
    }

    let context = try CopyingFleet.context(store, disk)
    #expect(CopyingFleet.differences(try CopyingFleet.contents(context), before).isEmpty)
    let ships = try CopyingFleet.all("Ship", context)
    try ships[ships.count / 2].setValue(.string("Changed"), forKey: "name")
    context.delete(ships[ships.count / 3])
    try context.save()
    let again = try CopyingFleet.context(store, CopyingFleet.copy(disk))
    let differences = try CopyingFleet.differences(CopyingFleet.contents(again), CopyingFleet.contents(context))
    #expect(differences.isEmpty, "\(differences)")
    let (found, written) = try #require(try CopyingFleet.objects(store, disk))
    // The save writes all objects in the store's own form.
    #expect(found == written && !found.isEmpty)
  }

  /// Order keys are stored apart from the objects, and are rewritten by each save. They decide the order, not the list in the object.
  @Test func anOrderStoredApartFromTheListInAnXMLFileIsKeptIfTheListIsUnchanged() throws {
    let disk = SimulatedFileSystem()
    let first = try CopyingFleet.context(.xml, disk)
    try CopyingFleet.fill(TestTier.isFull ? 20_000 : 2_000, first)
    let usual = try CopyingFleet.all("Fleet", first)[0].ordered(forKey: "ships").map(\.objectID.key)
    try first.persistentStoreCoordinator.close()
    var text = String(decoding: disk.contents(of: "harbour") ?? [], as: UTF8.self)
    let place = try #require(CopyingFleet.model.orderedRelationships.firstIndex { $0.name == "ships" })
    let fleets = text.matches(of: /<object type="FLEET" id="z(\d+)">.*?name="ships"[^>]*idrefs="([^"]*)"/)
    var notes: [UInt8] = [0, 1, UInt8(place)] + FoundText.number(UInt64(fleets.count)), last = 0
    for fleet in fleets {
      let key = try #require(Int(fleet.1)), count = fleet.2.split(separator: " ").count
      // In descending order, in steps of 16.
      notes += FoundText.number(UInt64(2 * (key - last))) + FoundText.number(UInt64(count)) + FoundText.number(UInt64(2 * 16 * (count + 1)))
      for _ in 1..<count { notes += FoundText.number(31) }
      last = key
    }
    text = text.replacing(
      "<key>_HoldfastModel</key>",
      with: "<key>_HoldfastRows</key><data>\(Data(notes).base64EncodedString())</data>\n<key>_HoldfastModel</key>", maxReplacements: 1)
    disk.setContents(of: "harbour", FoundText.sealed(text, .xml))

    let context = try CopyingFleet.context(.xml, disk)
    let fleet = try #require(try CopyingFleet.all("Fleet", context).first)
    let order = try fleet.ordered(forKey: "ships").map(\.objectID.key)
    #expect(order.count > 20 && order == usual.reversed(), "\(order)")
    let ship = try #require(try CopyingFleet.all("Ship", context).first)
    try ship.setValue(.string("Changed"), forKey: "name")
    try context.save()
    let again = try CopyingFleet.context(.xml, CopyingFleet.copy(disk))
    let differences = try CopyingFleet.differences(CopyingFleet.contents(again), CopyingFleet.contents(context))
    #expect(differences.isEmpty, "\(differences)")
  }

  /// Small entities with the same keys.
  @Test(arguments: [FileStore.json, .xml], [1, 2, 3, 5, 400])
  func smallEntitiesWithTheSameKeysAreDistinguished(store: FileStore, count: Int) throws {
    let names = (0..<40).map { "Kind\($0)" }
    let model = try ManagedObjectModel(
      entities: names.map { EntityDescription($0, attributes: [AttributeDescription("text", .string, isOptional: true)]) })
    let disk = SimulatedFileSystem()
    func context(_ disk: SimulatedFileSystem) throws -> ManagedObjectContext {
      try ManagedObjectContext(
        coordinator: PersistentStoreCoordinator(model: model, store: CopyingFleet.description(store, disk)))
    }
    func texts(_ context: ManagedObjectContext) throws -> [[String: String?]] {
      try names.map { name in
        let objects = try context.fetch(FetchRequest<ManagedObject>(entityName: name))
        return Dictionary(
          uniqueKeysWithValues: try objects.map {
            guard case .string(let text) = try $0.value(forKey: "text").storeValue else { return ("\($0.objectID.key)", nil) }
            return ("\($0.objectID.key)", text)
          })
      }
    }
    var random = SeededGenerator("Found files of small entities, \(store), \(count)")
    var open = try context(disk)
    for name in names {
      for number in 0..<Int.random(in: 1...count, using: &random) {
        let object = try open.insert(entityNamed: name)
        let length = Int.random(in: 0...(100_000 / count), using: &random)
        try object.setValue(.string("\(name) \(number) " + String(repeating: "t", count: length)), forKey: "text")
      }
    }
    try open.save()
    for round in 0..<6 {
      try open.persistentStoreCoordinator.close()
      open = try context(disk)
      let objects = try open.fetch(FetchRequest<ManagedObject>(entityName: names.randomElement(using: &random) ?? "Kind0"))
      try objects.randomElement(using: &random)?.setValue(.string("Changed in round \(round)"), forKey: "text")
      try open.save()
      let other = try context(CopyingFleet.copy(disk))
      #expect(try texts(other) == texts(open), "round \(round)")
      try other.persistentStoreCoordinator.close()
    }
    try open.persistentStoreCoordinator.close()
  }
}

/// Rewrites the objects of text files.
private enum FoundText {
  /// The file with each entity's objects in another order.
  static func json(_ text: String, _ order: ([String]) -> [String]) -> String {
    var text = text
    for entity in ["Ship", "Tug", "Fleet", "Port"] {
      guard let start = text.range(of: "\"\(entity)\":[\n"), let end = text[start.upperBound...].range(of: "\n]") else { continue }
      let objects = text[start.upperBound..<end.lowerBound].replacing("},\n{\"$key\":", with: "}\u{1}{\"$key\":").split(separator: "\u{1}")
      text.replaceSubrange(start.upperBound..<end.lowerBound, with: order(objects.map(String.init)).joined(separator: ",\n"))
    }
    return text
  }

  /// The file with its objects in another order.
  static func xml(_ text: String, _ order: ([String]) -> [String]) -> String {
    guard let start = text.range(of: "</databaseInfo>\n"), let end = text.range(of: "</database>", options: .backwards) else { return text }
    let objects = text[start.upperBound..<end.lowerBound].replacing("</object>\n", with: "</object>\n\u{1}").split(separator: "\u{1}")
    return text[..<start.upperBound] + order(objects.map(String.init)).joined() + text[end.lowerBound...]
  }

  /// A line that looks like an object.
  static let object = "<object type=\"SHIP\" id=\"z1\"></object>\n"

  static func filler(_ byteCount: Int) -> String { String(repeating: "x", count: byteCount) }

  /// A variable-length number, seven bits per byte.
  static func number(_ number: UInt64) -> [UInt8] {
    number < 128 ? [UInt8(number)] : [UInt8(number & 0x7F) | 0x80] + self.number(number >> 7)
  }

  /// The file with its digest updated.
  static func sealed(_ text: String, _ store: FileStore) -> [UInt8] {
    let seal =
      store == .json ? TextSeal(before: ",\n\"digest\":\"xxh64:", behind: "\"}\n") : TextSeal(before: "<!-- xxh64:", behind: " -->\n")
    let body = Array(text.utf8).dropLast(seal.byteCount)
    return Array(body) + seal.bytes(body.withUnsafeBytes { ContentDigest.value(of: $0) })
  }
}
