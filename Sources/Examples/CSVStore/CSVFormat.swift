public import HoldfastAtomicStore

/// Stores objects as CSV, with one table for each entity.
///
/// A table consists of a line with the entity's name, a line of column names, and a line for each object. An empty line precedes it.
/// Cells with values are quoted. Cells without quotes have no value.
public struct CSVFormat: DocumentFormat {
  /// A table lacks lines or cells, a text isn't quoted, or the file ends within a line.
  struct InvalidTable: Error {}

  /// The name in messages.
  public let storeType = "CSV"

  /// Creates the format.
  public init() {}

  /// The header, then a table for each entity that has objects.
  public func encode(_ records: [DocumentRecord], header: String) -> [UInt8] {
    var bytes = Array("# \(header)\n".utf8)
    for (entity, records) in Dictionary(grouping: records, by: \.entity).sorted(by: { $0.key < $1.key }) {
      let rows = records.map(\.fields), columns = Set(rows.flatMap(\.keys)).sorted()
      bytes += line([]) + line([entity]) + line(columns) + rows.flatMap { row in line(columns.map { row[$0] }) }
    }
    return bytes
  }

  /// Works on bytes: a quote with a combining accent is one `Character`, so comparing characters would miss the quote.
  private func line(_ cells: [String?]) -> [UInt8] {
    let quoted = cells.map { cell in cell.map { "\"\($0)\"".utf8.flatMap { $0 == 34 ? [34, 34] : [$0] }.dropFirst().dropLast() } ?? [] }
    return quoted.joined(separator: [44]) + [10]
  }

  /// The objects of all tables.
  public func decode(_ bytes: [UInt8]) throws -> [DocumentRecord] {
    // The first line is the header. Its end is an empty line of what follows.
    try lines(bytes.drop { $0 != 10 }).split { $0 == [nil] }.flatMap { table in
      guard table.count > 2, let entity = table.first, entity.count == 1, let names = table.dropFirst().first else { throw InvalidTable() }
      return try table.dropFirst(2).map { row in
        if row.count != names.count { throw InvalidTable() }
        let fields = zip(names, row).compactMap { name, cell in cell.map { (name ?? "", $0) } }
        return DocumentRecord(entity: entity[0] ?? "", fields: Dictionary(fields) { $1 })
      }
    }
  }

  private func lines(_ bytes: ArraySlice<UInt8>) throws -> [[String?]] {
    var lines: [[String?]] = [[]], cell: [UInt8] = [], isQuoted = false, wasQuoted = false
    for byte in bytes {
      if byte == 34 {
        if wasQuoted && !isQuoted { cell.append(byte) }
        (isQuoted, wasQuoted) = (!isQuoted, true)
      } else if isQuoted {
        cell.append(byte)
      } else if byte == 44 || byte == 10 {
        lines[lines.count - 1].append(wasQuoted ? String(decoding: cell, as: UTF8.self) : nil)
        (cell, wasQuoted) = ([], false)
        if byte == 10 { lines.append([]) }
      } else {
        // Skipping it would lose values of a file whose quotes another program has removed.
        throw InvalidTable()
      }
    }
    if lines.removeLast() != [] || wasQuoted { throw InvalidTable() }
    return lines
  }
}
