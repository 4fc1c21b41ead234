public import Foundation
import HoldfastModelFile
import HoldfastStore

/// Looks for what is allowed in a model and seldom meant.
///
/// The rules are about what goes wrong later: graphs that point into the void, saves that nobody expects to fail, versions that
/// cannot be told apart. `Tools/README.md` lists them.
public enum ModelLint {
  /// One remark.
  public struct Finding: Codable, Sendable, Hashable, CustomStringConvertible {
    /// The rule, in kebab case.
    public let rule: String
    /// The version of the model.
    public let version: String
    /// Where it is: `Person.age`.
    public let path: String
    /// What is odd and what would be better, as a sentence.
    public let reason: String

    /// One line.
    public var description: String { "\(version): \(path): \(reason) [\(rule)]" }
  }

  /// The rules by name: what each looks for.
  public static let rules: [(name: String, meaning: String)] =
    checks.map { ($0.name, $0.meaning) } + [
      (foreignDefault, "a default value of another type than its attribute, which is converted"),
      ("same-hashes", "versions that a store cannot tell apart"),
      (unreadable, "a version that cannot be read, about which nothing else is told"),
    ]

  /// All remarks about all versions.
  public static func findings(in source: ModelSource) -> [Finding] {
    source.versions.flatMap { version in
      checks.flatMap { check in
        check.find(version.model).map { Finding(rule: check.name, version: version.name, path: $0.path, reason: $0.reason) }
      }
    } + source.versions.flatMap(foreignDefaults) + sameVersions(source)
      + source.unreadable.map { Finding(rule: unreadable, version: $0.name, path: "model", reason: "It cannot be read. \($0.error)") }
  }

  private static let unreadable = "unreadable-version"
  private static let foreignDefault = "default-of-another-type"

  /// Only Xcode's file has the text that was converted.
  private static func foreignDefaults(_ version: ModelSource.Version) -> [Finding] {
    (version.document?.convertedDefaults ?? []).map {
      Finding(
        rule: foreignDefault, version: version.name, path: $0.path,
        reason: "Its default value \"\($0.text)\" is of another type. \($0.correctedText) is used. Write \($0.correctedText) in the model."
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
    Check(name: "no-inverse", meaning: "a relationship without inverse, which leads nowhere when its target is deleted") { model in
      relationships(model) { $0.inverse == nil }.map {
        ("\($0.entity).\($0.relationship.name)", "It has no inverse, so nobody tells it when its target is deleted. Give it one.")
      }
    },
    Check(name: "no-action", meaning: "a delete rule that leaves the other end pointing at nothing") { model in
      relationships(model) { $0.deleteRule == .noAction && $0.inverse != nil }.map {
        ("\($0.entity).\($0.relationship.name)", "Its delete rule leaves the other end leading to an object that is gone. Let it nullify.")
      }
    },
    Check(name: "mandatory-nullify", meaning: "a mandatory relationship that a deletion empties, which makes the save fail") { model in
      relationships(model) { relationship in
        guard let inverse = relationship.inverse, let destination = model.entity(named: relationship.destination)?.declaration
        else { return false }
        return relationship.deleteRule == .nullify
          && destination.relationships.contains { $0.name == inverse && !$0.isToMany && !$0.isOptional }
      }.map {
        (
          "\($0.entity).\($0.relationship.name)",
          "Deleting empties \($0.relationship.destination).\($0.relationship.inverse ?? ""), which is mandatory: the save fails. Let it cascade or deny."
        )
      }
    },
    Check(name: "mandatory-without-default", meaning: "a mandatory attribute without default, which every new object has to set") { model in
      attributes(model) { !$0.isOptional && !$0.isDerived && !$0.isTransient && $0.defaultValue == nil && $0.type != .composite }.map {
        ("\($0.entity).\($0.attribute.name)", "It is mandatory and has no default, so adding it to a store that has rows needs a mapping.")
      }
    },
    Check(name: "reserved-name", meaning: "a property with the name of a member of every managed object") { model in
      model.declarations.flatMap { entity in
        (entity.attributes.map(\.name) + entity.relationships.map(\.name)).filter(reserved.contains).map {
          ("\(entity.name).\($0)", "Every managed object has a member of this name. Rename it.")
        }
      }
    },
    Check(name: "empty-entity", meaning: "an entity without any property") { model in
      model.entities.filter {
        $0.slots.isEmpty && $0.relationships.isEmpty && $0.transientAttributes.isEmpty && $0.transientRelationships.isEmpty
      }.map {
        ($0.name, "It has no property, own or inherited.")
      }
    },
    Check(name: "abstract-leaf", meaning: "an abstract entity that nothing inherits from, so that it has no objects") { model in
      model.entities.filter { $0.isAbstract && $0.concreteIndexes.isEmpty }.map {
        ($0.name, "It is abstract and no entity that has objects inherits from it.")
      }
    },
    Check(name: "unused-composite", meaning: "a composite that no attribute has") { model in
      let elements = model.composites.flatMap(\.elements)
      let used = Set((model.declarations.flatMap(\.attributes) + elements).compactMap(\.compositeName))
      return model.composites.filter { !used.contains($0.name) }.map { ("composite \($0.name)", "No attribute has it.") }
    },
    Check(name: "default-beyond-rules", meaning: "a default value that the attribute's own bounds or lengths refuse") { model in
      attributes(model, isRefusedDefault).map {
        (
          "\($0.entity).\($0.attribute.name)",
          "Its default value is refused by its own bounds or lengths: a new object cannot be saved as it is."
        )
      }
    },
    Check(name: "ignored-index", meaning: "an index that no store can keep, which has no effect") { model in
      model.declarations.flatMap { entity in
        entity.indexes.filter(\.isIgnored).map { index in
          let isRepeated = entity.indexes.contains { $0 != index && $0.name.lowercased() == index.name.lowercased() && !$0.isIgnored }
          let cause = isRepeated ? "Another index of the entity has this name" : "It isn't an index on attributes and to-one relationships"
          return ("\(entity.name).\(index.name)", "\(cause), so the index has no effect. Rename, change or remove it.")
        }
      }
    },
    Check(name: "transformer-by-default", meaning: "a transformable attribute whose values only the default transformer reads") { model in
      attributes(model) { $0.type == .transformable && $0.valueTransformerName == nil }.map {
        (
          "\($0.entity).\($0.attribute.name)",
          "It names no transformer. Name one that is registered, or the values are read as property lists."
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
    // A pattern is code, which can run for any time, and the model may be a stranger's: it is not run.
    text.utf16.count < rule.minimumLength ?? 0 || text.utf16.count > rule.maximumLength ?? .max
  }

  /// Whether a number or date is below another of its type.
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

  /// Versions with the same hashes cannot be told apart by a store.
  private static func sameVersions(_ source: ModelSource) -> [Finding] {
    source.versions.enumerated().flatMap { place, version in
      source.versions[..<place].filter { $0.model.versionDigest == version.model.versionDigest }.map {
        Finding(
          rule: "same-hashes", version: version.name, path: "model",
          reason: "It has the version hashes of \($0.name), so a store opens with either. Set a hash modifier if they are to be told apart."
        )
      }
    }
  }
}

/// What `model lint` tells, as values. `Tools/README.md` documents the JSON form.
public struct LintReport: Codable, Sendable, Hashable {
  /// The form of the report.
  public var schema = 1
  /// The path as given.
  public var path: String
  /// The remarks.
  public var findings: [ModelLint.Finding]

  /// Looks through a model.
  public init(_ source: ModelSource) {
    path = source.path
    findings = ModelLint.findings(in: source)
  }

  /// The report as JSON, keys sorted.
  public func json() throws -> Data { try JSONReport.data(self) }

  /// The report for people: a line for each remark, and how many there are.
  public func text() -> String {
    let count = findings.count == 1 ? "1 remark" : "\(findings.count) remarks"
    return (findings.map(\.description) + ["\(path): \(findings.isEmpty ? "no remarks" : count)"]).joined(separator: "\n") + "\n"
  }
}
