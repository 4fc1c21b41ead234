import Foundation
import HoldfastStore

/// The contents of a Core Data XML store, found by plain text search, and a model that fits it. An oracle that shares no code with the
/// store's reader.
struct ForeignDocument {
  struct Object: Equatable {
    var type = ""
    /// The type and text of each attribute.
    var attributes: [String: [String]] = [:]
    var links: [String: [Int64]] = [:]
  }

  struct Relationship: Hashable {
    var name: String
    var isToMany: Bool
    var isOptional: Bool
    var destination: String
  }

  private(set) var objects: [Int64: Object] = [:]
  /// A number that two objects have.
  private(set) var repeated: Int64?
  private(set) var uuid: String?
  private(set) var nextObjectID: Int64?
  private(set) var relationships: [Relationship: Set<String>] = [:]

  init(_ text: String) {
    uuid = text.firstMatch(of: /<UUID>(.*?)<\/UUID>/).map { String($0.1) }
    nextObjectID = text.firstMatch(of: /<nextObjectID>(.*?)<\/nextObjectID>/).flatMap { Int64($0.1) }
    for part in text.components(separatedBy: "<object ").dropFirst() {
      guard let head = part.firstMatch(of: /^type="(.*?)" id="z(\d+)">/), let id = Int64(head.2) else { continue }
      var object = Object(type: String(head.1))
      for piece in part.components(separatedBy: "<attribute ").dropFirst() {
        guard let start = piece.firstMatch(of: /^name="(.*?)" type="(.*?)">/), let end = piece.range(of: "</attribute>") else { continue }
        object.attributes[String(start.1)] = [String(start.2), String(piece[start.range.upperBound..<end.lowerBound])]
      }
      for piece in part.components(separatedBy: "<relationship ").dropFirst() {
        guard let found = piece.firstMatch(of: /^name="(.*?)" type="(\d+)\/(\d+)" destination="(.*?)"(?: idrefs="(.*?)")?/) else {
          continue
        }
        object.links[String(found.1)] = (found.5 ?? "").split(separator: " ").compactMap { Int64($0.dropFirst()) }
        let relationship = Relationship(
          name: String(found.1), isToMany: found.3 != "1", isOptional: found.2 == "0", destination: String(found.4))
        relationships[relationship, default: []].insert(object.type)
      }
      if objects.updateValue(object, forKey: id) != nil { repeated = id }
    }
  }

  /// The value of an attribute, by the rules of Core Data's files.
  static func value(_ typed: [String]) -> StoreValue? {
    let text = typed[1]
    switch typed[0] {
    case "string": return .string(unescaped(text))
    case "int16": return Int16(text).map { .int16($0) }
    case "int32": return Int32(text).map { .int32($0) }
    case "float": return Float(text).map { .float($0) }
    case "bool": return .bool(text == "1")
    case "date": return Double(text).map { .date($0) }
    case "binary": return Data(base64Encoded: text, options: .ignoreUnknownCharacters).map { .data($0) }
    default: return nil
    }
  }

  private static func unescaped(_ text: String) -> String {
    text.replacing(/\\u([0-9a-fA-F]{2})([0-9a-fA-F]{2})/) { match in
      UInt32(String(match.2) + String(match.1), radix: 16).flatMap { Unicode.Scalar($0) }.map { String(Character($0)) } ?? ""
    }
  }

  // MARK: A model

  private static let types: [String: AttributeType] = [
    "string": .string, "int16": .integer16, "int32": .integer32, "float": .float, "bool": .boolean, "date": .date, "binary": .binaryData,
  ]

  /// All links of a relationship of objects of some types.
  private func links(_ relationship: Relationship, of types: Set<String>) -> Set<[Int64]> {
    Set(objects.flatMap { id, object in types.contains(object.type) ? (object.links[relationship.name] ?? []).map { [id, $0] } : [] })
  }

  /// The superentities that the links imply: a destination that differs from the target's type is its superentity. They form one line of
  /// inheritance.
  private var line: [String] {
    var supers: Set<String> = []
    for (relationship, owners) in relationships {
      for link in links(relationship, of: owners) {
        if let target = objects[link[1]], target.type != relationship.destination { supers.insert(relationship.destination) }
      }
    }
    let filled = Set(objects.values.map(\.type))
    return supers.sorted { (filled.contains($0) ? 1 : 0, $0) < (filled.contains($1) ? 1 : 0, $1) }
  }

  /// A model with the entities, attributes and relationships that the document shows. Names are as in the document, except for case.
  func model() throws -> ManagedObjectModel {
    let line = line
    let names = Set(objects.values.map(\.type)).union(relationships.keys.map(\.destination))
    var declared: [String: [RelationshipDescription]] = [:]
    var paired: Set<String> = []
    let all = relationships.flatMap { relationship, owners in
      (owners.count > 1 ? [owners] : []).map { (relationship, $0) } + owners.map { (relationship, Set([$0])) }
    }
    .sorted { ($0.1.count, $0.0.name, $0.1.sorted().joined()) > ($1.1.count, $1.0.name, $1.1.sorted().joined()) }
    func isFamily(_ owners: Set<String>, of entity: String) -> Bool { owners.allSatisfy { $0 == entity || line.contains(entity) } }
    func isFree(_ relationship: Relationship, _ owners: Set<String>) -> Bool {
      owners.allSatisfy { !paired.contains("\($0).\(relationship.name)") }
    }
    // Relationships whose links are each other's reverse are inverses.
    for (first, owners) in all {
      let links = links(first, of: owners)
      if links.isEmpty || !isFree(first, owners) { continue }
      let reversed = Set(links.map { [$0[1], $0[0]] })
      for (second, others) in all where second.name != first.name && isFree(second, others) {
        guard isFamily(owners, of: second.destination), isFamily(others, of: first.destination), self.links(second, of: others) == reversed
        else { continue }
        declared[second.destination, default: []].append(described(first, inverse: second.name))
        declared[first.destination, default: []].append(described(second, inverse: first.name))
        for owner in owners { paired.insert("\(owner).\(first.name)") }
        for owner in others { paired.insert("\(owner).\(second.name)") }
        break
      }
    }
    for (relationship, owners) in relationships {
      for owner in owners where !paired.contains("\(owner).\(relationship.name)") {
        declared[owner, default: []].append(described(relationship, inverse: nil))
      }
    }
    return try ManagedObjectModel(
      entities: names.sorted().map { name in
        let place = line.firstIndex(of: name)
        let above = place.map { $0 == 0 ? nil : line[$0 - 1] } ?? (isUnderLine(name) ? line.last : nil)
        let inheritedAttributes = line.prefix(place ?? (above == nil ? 0 : line.count)).flatMap { attributes(of: $0).map(\.name) }
        let inherited = line.prefix(place ?? (above == nil ? 0 : line.count)).flatMap { declared[$0] ?? [] }.map(\.name)
        return EntityDescription(
          name.capitalized, superentity: above?.capitalized,
          attributes: attributes(of: name).filter { !inheritedAttributes.contains($0.name) },
          relationships: (declared[name] ?? []).filter { !inherited.contains($0.name) })
      })
  }

  /// Whether a relationship to an entity of the line has a target of that type.
  private func isUnderLine(_ type: String) -> Bool {
    relationships.contains { relationship, owners in
      line.contains(relationship.destination) && links(relationship, of: owners).contains { objects[$0[1]]?.type == type }
    }
  }

  private func attributes(of type: String) -> [AttributeDescription] {
    var found: [String: String] = [:]
    for object in objects.values where object.type == type { for (name, value) in object.attributes { found[name] = value[0] } }
    return found.sorted { $0.key < $1.key }.compactMap { name, kind in
      ForeignDocument.types[kind].map { AttributeDescription(name.uppercased(), $0, isOptional: true) }
    }
  }

  private func described(_ relationship: Relationship, inverse: String?) -> RelationshipDescription {
    relationship.isToMany
      ? .toMany(relationship.name, to: relationship.destination.capitalized, inverse: inverse)
      : .toOne(relationship.name, to: relationship.destination.capitalized, inverse: inverse, isOptional: relationship.isOptional)
  }
}
