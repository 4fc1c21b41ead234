import Foundation
import HoldfastStore

/// The objects in an exported file or folder.
struct ExchangeFile {
  enum Field {
    case text(String)
    case list([String])
  }

  struct Record {
    var entityName: String
    /// Where the record is, for errors: a line, or an index in a list.
    var place: String
    /// The file of the record.
    var path: String
    /// The values by name, without nil.
    var fields: [String: Field]

    func failure(_ reason: String) -> CommandError { CommandError(path: path, reason: "\(place): \(reason)") }
  }

  private(set) var records: [Record] = []

  init(path: String) throws(CommandError) {
    switch FileKind(path) {
    case .folder: try readCSV(path)
    case .file: try readJSON(path)
    default: throw CommandError(path: path, reason: "There is no file or folder at this path. Check the path.")
    }
  }

  private static func text(_ path: String) throws(CommandError) -> String {
    switch FileKind(path) {
    case .file: break
    case .folder: throw CommandError(path: path, reason: "It is a folder. Only files can have the extension .csv.")
    case .other: throw FileKind.noFile(path)
    case nil: throw CommandError(path: path, reason: "The file can't be read.")
    }
    let data: Data
    do { data = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
      throw CommandError(path: path, reason: "The file can't be read.", cause: error)
    }
    guard let text = String(validating: data, as: UTF8.self) else { throw CommandError(path: path, reason: "The file isn't valid UTF-8.") }
    return text
  }

  // MARK: CSV

  private mutating func readCSV(_ folder: String) throws(CommandError) {
    // macOS adds files such as ._Dog.csv on disks of other systems. No entity has such a name.
    let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
      .filter { $0.lowercased().hasSuffix(".csv") && !$0.hasPrefix(".") }.sorted()
    if names.isEmpty { throw CommandError(path: folder, reason: "The folder has no CSV files. Give one that export has written.") }
    for name in names {
      let path = folder + "/" + name, text = try Self.text(path), all: [CSVText.Record]
      do throws(CSVText.Fault) { all = try CSVText.records(text) } catch {
        throw CommandError(path: path, reason: "Line \(error.line): \(error.reason)")
      }
      guard let header = all.first else {
        throw CommandError(path: path, reason: "The file is empty. Its first line must name the columns.")
      }
      let columns = header.fields.map { $0 ?? "" }
      guard Set(columns).count == columns.count, !columns.contains("") else {
        throw CommandError(path: path, reason: "Line 1: A column has no name, or several have the same.")
      }
      for record in all.dropFirst() {
        guard record.fields.count == columns.count else {
          throw CommandError(path: path, reason: "Line \(record.line) has \(record.fields.count) fields, and line 1 has \(columns.count).")
        }
        var fields: [String: Field] = [:]
        for (column, field) in zip(columns, record.fields) { if let field { fields[column] = .text(field) } }
        records.append(Record(entityName: String(name.dropLast(4)), place: "Line \(record.line)", path: path, fields: fields))
      }
    }
  }

  // MARK: JSON

  private mutating func readJSON(_ path: String) throws(CommandError) {
    let text = try Self.text(path), json = Data(Self.quotingLongNumbers(in: Array(text.utf8))), entities: [String: [[String: JSONField]]]
    do { entities = try JSONDecoder().decode([String: [[String: JSONField]]].self, from: json) } catch {
      throw CommandError(
        path: path, reason: "The file isn't JSON of the exported form: an object with a list of objects for each entity.", cause: error)
    }
    if let (name, line) = Self.repeatedName(in: Array(text.utf8)) {
      throw CommandError(path: path, reason: "Line \(line): Another member of the same object has the name \(name), too.")
    }
    for (name, objects) in entities.sorted(by: { $0.key < $1.key }) {
      for (index, object) in objects.enumerated() {
        records.append(
          Record(entityName: name, place: "\(name), object \(index + 1)", path: path, fields: object.compactMapValues(\.field)))
      }
    }
  }

  /// JSON in which numbers with more digits than a decimal number are text. The decoder would leave out digits without an error.
  private static func quotingLongNumbers(in json: [UInt8]) -> [UInt8] {
    let quote = UInt8(ascii: "\"")
    func isInNumber(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte) }
    var quoted: [UInt8] = [], place = 0
    quoted.reserveCapacity(json.count)
    while place < json.count {
      let start = place
      if json[place] == quote {
        place += 1
        while place < json.count, json[place] != quote { place += json[place] == UInt8(ascii: "\\") ? 2 : 1 }
        place = min(place + 1, json.count)
        quoted += json[start..<place]
        continue
      }
      while place < json.count, isInNumber(json[place]) { place += 1 }
      let isLong = place - start > 38 && ExchangeText.digits(String(decoding: json[start..<place], as: UTF8.self)).count > 38
      // A byte that isn't part of a number.
      if place == start { place += 1 }
      if isLong { quoted.append(quote) }
      quoted += json[start..<place]
      if isLong { quoted.append(quote) }
    }
    return quoted
  }

  /// The first member of valid JSON with the name of another member of its object. The decoder returns only one of them. Nil if all names
  /// are different.
  private static func repeatedName(in json: [UInt8]) -> (name: String, line: Int)? {
    // The names in each open object. Those of an open list remain empty.
    var names: [Set<String>] = [], place = 0, line = 1
    while place < json.count {
      switch json[place] {
      case UInt8(ascii: "\n"): line += 1
      case UInt8(ascii: "{"), UInt8(ascii: "["): names.append([])
      case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = names.popLast()
      case UInt8(ascii: "\""):
        let start = place
        place += 1
        while place < json.count, json[place] != UInt8(ascii: "\"") { place += json[place] == UInt8(ascii: "\\") ? 2 : 1 }
        // A text is a name if a colon follows it.
        guard place < json.count, json[(place + 1)...].first(where: { !" \t\r\n".utf8.contains($0) }) == UInt8(ascii: ":"),
          let name = Self.name(json[start...place]), !names.isEmpty
        else { break }
        if !names[names.count - 1].insert(name).inserted { return (name, line) }
      default: break
      }
      place += 1
    }
    return nil
  }

  /// The name in quotation marks.
  private static func name(_ quoted: ArraySlice<UInt8>) -> String? {
    if quoted.contains(UInt8(ascii: "\\")) { return try? JSONDecoder().decode(String.self, from: Data(quoted)) }
    return String(decoding: quoted.dropFirst().dropLast(), as: UTF8.self)
  }

  /// A member of an object.
  private struct JSONField: Decodable {
    let field: Field?

    init(from decoder: any Decoder) throws {
      if var list = try? decoder.unkeyedContainer() {
        var references: [String] = []
        while !list.isAtEnd { references.append(try list.decode(String.self)) }
        field = .list(references)
        return
      }
      let value = try decoder.singleValueContainer()
      if value.decodeNil() {
        field = nil
      } else if let flag = try? value.decode(Bool.self) {
        field = .text(flag ? "true" : "false")
      } else if let number = try? value.decode(Double.self) {
        field = .text(Self.text(number, value))
      } else {
        field = .text(try value.decode(String.self))
      }
    }

    /// The text of a number that is exact for every type of attribute. A decimal number has more digits than a double, and all digits of an
    /// integer.
    ///
    /// The decoder isn't asked for an integer: it reads 1.0000000000000001 as 1, and 12345678901234567.25 without its fraction.
    private static func text(_ number: Double, _ value: any SingleValueDecodingContainer) -> String {
      if let decimal = try? value.decode(Decimal.self), Double("\(decimal)") == number { return "\(decimal)" }
      return "\(number)"
    }
  }
}
