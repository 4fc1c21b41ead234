import Foundation
import HoldfastStore

extension ModelReport {
  /// The report as text.
  public func text() -> String {
    var lines = ["\(path): \(kind), \(versions.count) \(versions.count == 1 ? "version" : "versions")"]
    for version in versions { lines += [""] + version.lines() }
    for (name, reason) in unreadable.sorted(by: { $0.key < $1.key }) {
      lines += ["", "version \(name)\(name == currentVersion ? " (current)" : ""): can't be read. \(reason)"]
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

extension ModelReport.Version {
  fileprivate func lines() -> [String] {
    let identifiers = versionIdentifiers.filter { !$0.isEmpty }
    var lines = ["version \(name)\(isCurrent ? " (current)" : "")"]
    if !identifiers.isEmpty { lines.append("  identifiers \(identifiers.joined(separator: ", "))") }
    lines += ["  digest    \(digest)", "  checksum  \(checksum)"]
    for entity in entities { lines += [""] + entity.lines() }
    for composite in composites {
      lines += ["", "  composite \(composite.name)"] + Columns.aligned(composite.elements.map(AttributeWords.row), indent: 4)
    }
    for configuration in configurations {
      lines += ["", "  configuration \(configuration.name): \(configuration.entities.joined(separator: ", "))"]
    }
    for request in fetchRequestTemplates { lines += ["", "  fetch request \(request.name): \(RequestWords.text(request))"] }
    return lines
  }
}

extension ModelReport.Entity {
  fileprivate func lines() -> [String] {
    var lines = ["  entity \(name)\(EntityWords.settings(declaration))", "    hash \(versionHash)"]
    if !subentities.isEmpty { lines.append("    sub-entities \(subentities.joined(separator: ", "))") }
    var rows = declaration.attributes.sorted { $0.name < $1.name }.map(AttributeWords.row)
    rows += declaration.relationships.sorted { $0.name < $1.name }.map(RelationshipWords.row)
    rows += declaration.fetchedProperties.sorted { $0.name < $1.name }.map {
      [$0.name, "fetched", RequestWords.text($0.fetchRequest) + Words.shared($0.versionHashModifier, $0.renamingIdentifier, $0.userInfo)]
    }
    lines += Columns.aligned(rows, indent: 4)
    for constraint in declaration.uniquenessConstraints { lines.append("    unique \(constraint.joined(separator: ", "))") }
    for index in declaration.indexes {
      let ignored = index.isIgnored ? " (ignored)" : ""
      lines.append("    index \(index.name): \(index.elements.map(Words.element).joined(separator: ", "))\(ignored)")
    }
    return lines
  }
}

/// Aligns rows in columns.
enum Columns {
  static func aligned(_ rows: [[String]], indent: Int) -> [String] {
    let columnCount = rows.map(\.count).max() ?? 0
    let widths = (0..<columnCount).map { column in rows.map { $0.count > column ? $0[column].count : 0 }.max() ?? 0 }
    return rows.map { row in
      let cells = row.enumerated().map { column, cell in
        column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
      }
      let line = String(repeating: " ", count: indent) + cells.joined(separator: "  ")
      return String(line.reversed().drop { $0 == " " }.reversed())
    }
  }
}

enum EntityWords {
  static func settings(_ entity: EntityDescription) -> String {
    var words: [String] = []
    if let above = entity.superentity { words.append("parent \(above)") }
    if entity.isAbstract { words.append("abstract") }
    if let name = entity.managedObjectClassName { words.append("class \(name)") }
    let text = words.joined(separator: ", ") + Words.shared(entity.versionHashModifier, entity.renamingIdentifier, entity.userInfo)
    let trimmed = text.hasPrefix(", ") ? String(text.dropFirst(2)) : text
    return trimmed.isEmpty ? "" : ": \(trimmed)"
  }
}

enum AttributeWords {
  static func row(_ attribute: AttributeDescription) -> [String] { [attribute.name, type(attribute), settings(attribute)] }

  static func type(_ attribute: AttributeDescription) -> String {
    attribute.compositeName.map { "composite \($0)" } ?? attribute.type.rawValue
  }

  private static func settings(_ attribute: AttributeDescription) -> String {
    var words = [attribute.isOptional ? "optional" : "mandatory"]
    if attribute.isTransient { words.append("transient") }
    if let expression = attribute.derivationExpression { words.append("derived \(expression)") }
    if let value = attribute.defaultValue { words.append("default \(Words.value(value))") }
    words += rules(attribute.validation)
    if let name = attribute.valueTransformerName { words.append("transformer \(name)") }
    if let name = attribute.valueClassName { words.append("class \(name)") }
    if attribute.allowsExternalBinaryDataStorage { words.append("external storage") }
    if attribute.preservesValueInHistoryOnDeletion { words.append("preserved in history") }
    if attribute.allowsCloudEncryption { words.append("encryption allowed") }
    return words.joined(separator: ", ") + Words.shared(attribute.versionHashModifier, attribute.renamingIdentifier, attribute.userInfo)
  }

  private static func rules(_ rule: AttributeValidation) -> [String] {
    var words: [String] = []
    if let minimum = rule.minimum { words.append("at least \(Words.value(minimum))") }
    if let maximum = rule.maximum { words.append("at most \(Words.value(maximum))") }
    if let minimum = rule.minimumLength { words.append("length at least \(minimum)") }
    if let maximum = rule.maximumLength { words.append("length at most \(maximum)") }
    if let pattern = rule.regularExpression { words.append("matches \(pattern)") }
    return words
  }
}

enum RelationshipWords {
  static func row(_ relationship: RelationshipDescription) -> [String] {
    [relationship.name, "\(relationship.isToMany ? "to many" : "to one") \(relationship.destination)", settings(relationship)]
  }

  private static func settings(_ relationship: RelationshipDescription) -> String {
    var words = [relationship.isOptional ? "optional" : "mandatory"]
    if relationship.isTransient { words.append("transient") }
    words.append(relationship.inverse.map { "inverse \($0)" } ?? "no inverse")
    words.append("on delete \(rule(relationship.deleteRule))")
    if relationship.isOrdered { words.append("ordered") }
    if relationship.isToMany && relationship.minCount > 0 { words.append("at least \(relationship.minCount)") }
    if relationship.isToMany && relationship.maxCount > 0 { words.append("at most \(relationship.maxCount)") }
    return words.joined(separator: ", ")
      + Words.shared(relationship.versionHashModifier, relationship.renamingIdentifier, relationship.userInfo)
  }

  private static func rule(_ rule: DeleteRule) -> String {
    switch rule {
    case .noAction: "no action"
    case .nullify: "nullify"
    case .cascade: "cascade"
    case .deny: "deny"
    }
  }
}

enum RequestWords {
  static func text(_ request: FetchRequestDescription) -> String {
    var words = [request.entity + (request.predicateFormat.map { " where \($0)" } ?? "")]
    if request.fetchLimit > 0 { words.append("limit \(request.fetchLimit)") }
    if request.fetchBatchSize > 0 { words.append("in batches of \(request.fetchBatchSize)") }
    if request.resultType != .managedObjects { words.append("as \(request.resultType)") }
    return words.joined(separator: ", ")
  }
}

enum Words {
  /// Settings that every element of a model can have.
  static func shared(_ modifier: String?, _ renaming: String?, _ userInfo: [String: String]) -> String {
    var words: [String] = []
    if let modifier { words.append("hash modifier \(modifier)") }
    if let renaming { words.append("was \(renaming)") }
    if !userInfo.isEmpty {
      words.append("user info {\(userInfo.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", "))}")
    }
    return words.isEmpty ? "" : ", " + words.joined(separator: ", ")
  }

  static func element(_ element: FetchIndexElement) -> String {
    element.property + (element.isAscending ? "" : " descending") + (element.kind == .rTree ? " (R-tree)" : "")
  }

  static func value(_ value: StoreValue) -> String {
    switch value {
    case .null: "nil"
    case .bool(let value): value ? "true" : "false"
    case .int16, .int32, .int64: value.integer.map { "\($0)" } ?? ""
    case .float(let value): "\(value)"
    case .double(let value): "\(value)"
    case .decimal(let value): value.description
    case .string(let value): "\"\(value)\""
    // Dates that differ have different texts.
    case .date(let seconds): ExchangeText.date(seconds)
    case .uuid(let value): value.uuidString
    case .uri(let value): value
    case .data(let value): "\(value.count) bytes"
    case .externalData(let name): "bytes in the file \(name.uuidString)"
    case .objectID(let value): value.uriRepresentation
    }
  }
}
