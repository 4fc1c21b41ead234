public import Foundation
import HoldfastModelFile
import HoldfastStore

/// Finds constructs in a model that are allowed but rarely intended.
///
/// The rules are about later problems: dangling references, saves that fail unexpectedly, versions that a store can't distinguish.
/// `Tools/README.md` describes the command.
public enum ModelLint {
  /// A finding.
  public struct Finding: Codable, Sendable, Hashable, CustomStringConvertible {
    /// The rule, in kebab case.
    public let rule: String
    /// The version of the model.
    public let version: String
    /// The location, for example `Person.age`.
    public let path: String
    /// The problem and the recommended change, as sentences.
    public let reason: String

    /// The finding on one line.
    public var description: String { "\(version): \(path): \(reason) [\(rule)]" }
  }

  /// The name of each rule, and what it finds.
  public static let rules: [(name: String, meaning: String)] =
    checks.map { ($0.name, $0.meaning) } + [
      (foreignDefault, "a default value whose type differs from its attribute's and is converted"),
      ("same-hashes", "versions that a store can't distinguish"),
      (unreadable, "a version that can't be read; no other rule checks it"),
    ]

  /// All findings in all versions.
  public static func findings(in source: ModelSource) -> [Finding] {
    source.versions.flatMap { version in
      checks.flatMap { check in
        check.find(version.model).map { Finding(rule: check.name, version: version.name, path: $0.path, reason: $0.reason) }
      }
    } + source.versions.flatMap(foreignDefaults) + sameVersions(source)
      + source.unreadable.map {
        Finding(rule: unreadable, version: $0.name, path: "model", reason: "The version can't be read. \($0.error)")
      }
  }

  private static let unreadable = "unreadable-version"
  private static let foreignDefault = "default-of-another-type"

  /// Only Xcode's files contain the converted text.
  private static func foreignDefaults(_ version: ModelSource.Version) -> [Finding] {
    (version.document?.convertedDefaults ?? []).map {
      Finding(
        rule: foreignDefault, version: version.name, path: $0.path,
        reason: "Its default value \"\($0.text)\" has the wrong type. \($0.correctedText) is used. Write \($0.correctedText) in the model."
      )
    }
  }

  private typealias Remark = (path: String, reason: String)

  private struct Check {
    let name: String
    let meaning: String
    let find: @Sendable (ManagedObjectModel) -> [Remark]
  }

  private static let checks = [
    Check(name: "no-inverse", meaning: "a relationship without an inverse, which can point to a deleted object") { model in
      relationships(model) { $0.inverse == nil }.map {
        (
          "\($0.entity).\($0.relationship.name)",
          "It has no inverse, so deleting its destination can leave a dangling reference. Add an inverse."
        )
      }
    },
    Check(name: "no-action", meaning: "a delete rule that leaves the other end pointing to a deleted object") { model in
      relationships(model) { $0.deleteRule == .noAction && $0.inverse != nil }.map {
        ("\($0.entity).\($0.relationship.name)", "Its delete rule leaves the other end pointing to a deleted object. Use Nullify.")
      }
    },
    Check(name: "mandatory-nullify", meaning: "a mandatory relationship that a deletion sets to nil, so that the save fails") { model in
      relationships(model) { relationship in
        guard let inverse = relationship.inverse, let destination = model.entity(named: relationship.destination)?.declaration
        else { return false }
        return relationship.deleteRule == .nullify
          && destination.relationships.contains { $0.name == inverse && !$0.isToMany && !$0.isOptional }
      }.map {
        (
          "\($0.entity).\($0.relationship.name)",
          "Deleting sets \($0.relationship.destination).\($0.relationship.inverse ?? "") to nil, but it's mandatory, so the save fails. Use Cascade or Deny."
        )
      }
    },
    Check(name: "mandatory-without-default", meaning: "a mandatory attribute without a default value") { model in
      attributes(model) { !$0.isOptional && !$0.isDerived && !$0.isTransient && $0.defaultValue == nil && $0.type != .composite }.map {
        (
          "\($0.entity).\($0.attribute.name)",
          "It is mandatory and has no default value, so adding it to a store with rows needs a mapping."
        )
      }
    },
    Check(name: "reserved-name", meaning: "a property with the name of a member that every managed object has") { model in
      model.declarations.flatMap { entity in
        (entity.attributes.map(\.name) + entity.relationships.map(\.name)).filter(reserved.contains).map {
          ("\(entity.name).\($0)", "Every managed object has a member with this name. Rename the property.")
        }
      }
    },
    Check(name: "empty-entity", meaning: "an entity without properties") { model in
      model.entities.filter {
        $0.slots.isEmpty && $0.relationships.isEmpty && $0.transientAttributes.isEmpty && $0.transientRelationships.isEmpty
      }.map {
        ($0.name, "It has no properties, declared or inherited.")
      }
    },
    Check(name: "abstract-leaf", meaning: "an abstract entity without concrete sub-entities, which can't have objects") { model in
      model.entities.filter { $0.isAbstract && $0.concreteIndexes.isEmpty }.map {
        ($0.name, "It is abstract and has no concrete sub-entities.")
      }
    },
    Check(name: "unused-composite", meaning: "a composite that no attribute uses") { model in
      let elements = model.composites.flatMap(\.elements)
      let used = Set((model.declarations.flatMap(\.attributes) + elements).compactMap(\.compositeName))
      return model.composites.filter { !used.contains($0.name) }.map { ("composite \($0.name)", "No attribute uses it.") }
    },
    Check(name: "default-beyond-rules", meaning: "a default value outside the attribute's own limits") { model in
      attributes(model, isRefusedDefault).map {
        (
          "\($0.entity).\($0.attribute.name)",
          "Its default value is outside its own limits, so a new object can't be saved unchanged. Change one of them."
        )
      }
    },
    Check(name: "ignored-index", meaning: "an index that no store supports, which has no effect") { model in
      model.declarations.flatMap { entity in
        entity.indexes.filter(\.isIgnored).map { index in
          let isRepeated = entity.indexes.contains { $0 != index && $0.name.lowercased() == index.name.lowercased() && !$0.isIgnored }
          let cause = isRepeated ? "Another index of the entity has this name" : "It isn't an index on attributes and to-one relationships"
          return ("\(entity.name).\(index.name)", "\(cause), so the index has no effect. Rename, change or remove it.")
        }
      }
    },
    Check(name: "transformer-by-default", meaning: "a transformable attribute without a transformer") { model in
      attributes(model) { $0.type == .transformable && $0.valueTransformerName == nil }.map {
        (
          "\($0.entity).\($0.attribute.name)",
          "It has no transformer, so its values are read as property lists. Set a registered transformer."
        )
      }
    },
  ]

  private static let reserved: Set<String> = [
    "description", "hash", "objectID", "entity", "managedObjectContext", "isFault", "isInserted", "isUpdated", "isDeleted", "hasChanges",
    "self", "init", "Type",
  ]

  private static func isRefusedDefault(_ attribute: AttributeDescription) -> Bool {
    guard let value = attribute.defaultValue else { return false }
    let rule = attribute.validation
    switch value {
    case .string(let text), .uri(let text): return isRefused(text, rule)
    default: return isBelow(value, rule.minimum) || rule.maximum.map { isBelow($0, value) } ?? false
    }
  }

  private static func isRefused(_ text: String, _ rule: AttributeValidation) -> Bool {
    // Patterns aren't run: the model can be untrusted, and a pattern can take any amount of time.
    text.utf16.count < rule.minimumLength ?? 0 || text.utf16.count > rule.maximumLength ?? .max
  }

  /// Whether a number or date is less than another of its type.
  private static func isBelow(_ value: StoreValue, _ bound: StoreValue?) -> Bool {
    guard let bound else { return false }
    if case (.decimal(let value), .decimal(let bound)) = (value, bound) { return value < bound }
    if let value = value.integer, let bound = bound.integer { return value < bound }
    guard let value = value.real, let bound = bound.real else { return false }
    return value < bound
  }

  private static func relationships(
    _ model: ManagedObjectModel, _ isMeant: (RelationshipDescription) -> Bool
  ) -> [(entity: String, relationship: RelationshipDescription)] {
    model.declarations.flatMap { entity in entity.relationships.filter(isMeant).map { (entity.name, $0) } }
  }

  private static func attributes(
    _ model: ManagedObjectModel, _ isMeant: (AttributeDescription) -> Bool
  ) -> [(entity: String, attribute: AttributeDescription)] {
    model.declarations.flatMap { entity in entity.attributes.filter(isMeant).map { (entity.name, $0) } }
  }

  /// Finds versions with the same hashes, which a store can't distinguish.
  private static func sameVersions(_ source: ModelSource) -> [Finding] {
    source.versions.enumerated().flatMap { place, version in
      source.versions[..<place].filter { $0.model.versionDigest == version.model.versionDigest }.map {
        Finding(
          rule: "same-hashes", version: version.name, path: "model",
          reason: "It has the same version hashes as \($0.name), so a store opens with either. Set a hash modifier to distinguish them."
        )
      }
    }
  }
}

/// The report of `model lint`, as values. `Tools/README.md` documents the JSON format.
public struct LintReport: Codable, Sendable, Hashable {
  /// The version of the report's format.
  public var schema = 1
  /// The path as passed to the command.
  public var path: String
  /// The findings.
  public var findings: [ModelLint.Finding]

  /// Checks a model.
  public init(_ source: ModelSource) {
    path = source.path
    findings = ModelLint.findings(in: source)
  }

  /// The report as JSON with sorted keys.
  public func json() throws -> Data { try JSONReport.data(self) }

  /// The report as text: one line per finding, then their number.
  public func text() -> String {
    let count = findings.count == 1 ? "1 finding" : "\(findings.count) findings"
    return (findings.map(\.description) + ["\(path): \(findings.isEmpty ? "no findings" : count)"]).joined(separator: "\n") + "\n"
  }
}
