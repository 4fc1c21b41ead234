import Foundation
import ServiceAPI

extension Dataset {
  /// Applies a save. If it throws, the caller discards the dataset.
  mutating func apply(_ save: Save) throws(Refusal) {
    let unmet = save.conditions.filter { row($0.row)?.etag != $0.ifMatch }
    if !unmet.isEmpty { throw .conflict(conflicts: unmet.map { Conflict($0, current: row($0.row)) }) }
    for id in save.deleted { tables[id.table]?[id.key] = nil }
    for row in save.updated {
      tables[row.table]?[row.key]?.etag = row.etag
      for (field, value) in row.fields { set(RowID(table: row.table, key: row.key), field, value) }
    }
    for row in save.inserted {
      let id = RowID(table: row.table, key: row.key)
      if self.row(id) != nil { throw .keyInUse(row: id) }
      tables[row.table, default: [:]][row.key] = row
    }
    let duplicates = save.unique.flatMap(duplicates)
    if !duplicates.isEmpty { throw .notUnique(duplicates: duplicates) }
    for link in save.unlinked { links[link.relationship]?[link.pair] = nil }
    for link in save.linked { add(link) }
    sever(save.severed)
    for position in save.positions {
      switch position {
      case .ofTarget(let link, let order): links[link.relationship]?[link.pair]?.ofTarget = order
      case .ofSource(let link, let order): links[link.relationship]?[link.pair]?.ofSource = order
      case .ofRow(let id, let reference, let order): set(id, reference + ".order", .integer(order))
      }
    }
    for change in save.derived { try apply(change) }
  }

  private func duplicates(_ constraint: Uniqueness) -> [Duplicate] {
    var found: [Duplicate] = [], owners: [[UInt8]: Row] = [:]
    // The rows of the save come last, because they are the ones to report.
    let stored = rows(constraint.rows).filter { !constraint.keys.contains($0.key) }
    for row in stored + rows(constraint.rows).filter({ constraint.keys.contains($0.key) }).sorted(by: { $0.key < $1.key }) {
      guard let values = row.bytes(of: constraint.fields) else { continue }
      if let owner = owners[values] { found.append(Duplicate(row, of: owner, fields: constraint.fields)) }
      owners[values] = row
    }
    return found
  }

  /// Adds a link. One that exists keeps its positions.
  private mutating func add(_ link: Link) {
    if link.isExclusive {
      links[link.relationship] = links[link.relationship]?.filter { $0.key.target != link.target || $0.key.source == link.source }
    }
    let orders = links[link.relationship]?[link.pair] ?? Orders()
    links[link.relationship, default: [:]][link.pair] = orders
  }

  private mutating func sever(_ severed: [Severing]) {
    var changed: Set<RowID> = []
    for severing in severed {
      switch severing.references {
      case .field(let field, let selection):
        for row in Array(rows(selection)) {
          guard case .integer(let key)? = row.fields[field], severing.keys.contains(key) else { continue }
          let id = RowID(table: row.table, key: row.key)
          set(id, field, .null)
          if changed.insert(id).inserted { tables[row.table]?[row.key]?.etag = row.etag == .max ? 1 : row.etag + 1 }
        }
      case .linksFromSources(let relationship):
        links[relationship] = links[relationship]?.filter { !severing.keys.contains($0.key.source) }
      case .linksToTargets(let relationship):
        links[relationship] = links[relationship]?.filter { !severing.keys.contains($0.key.target) }
      }
    }
  }

  private mutating func apply(_ change: FieldChange) throws(Refusal) {
    let stored = row(change.row)?.fields[change.field] ?? .null
    switch (change.change, stored) {
    case (.set(let value), _): set(change.row, change.field, value)
    case (.add(let amount, let minimum, let maximum), .integer(let number)):
      let (sum, overflow) = number.addingReportingOverflow(amount)
      if overflow || sum < minimum || sum > maximum { throw .doesNotFit(row: change.row, field: change.field) }
      set(change.row, change.field, .integer(sum))
    case (.addDecimal(let amount), .text(let text)):
      let sum = (Decimal(string: text) ?? .nan) + (Decimal(string: amount) ?? .nan)
      set(change.row, change.field, .text(sum.description))
    default: break
    }
  }

  /// Sets a field. A reference that changes loses its position.
  private mutating func set(_ id: RowID, _ field: String, _ value: FieldValue) {
    let isSame = row(id)?.fields[field]?.equals(value) ?? false
    tables[id.table]?[id.key]?.fields[field] = value
    if !isSame { tables[id.table]?[id.key]?.fields[field + ".order"] = nil }
  }
}

extension Row {
  /// The values of some fields as bytes, which are equal only if the values are; nil if one is null or NaN.
  fileprivate func bytes(of names: [String]) -> [UInt8]? {
    let values = names.compactMap { fields[$0] }.filter { $0.equals($0) && !$0.equals(.null) }
    return values.count == names.count ? Array("\(values)".utf8) : nil
  }
}

extension Link {
  fileprivate var pair: Dataset.Pair { Dataset.Pair(source: source, target: target) }
}
