import HoldfastPropertyList
import HoldfastStore
import TestSupport

/// Builds a keyed archive object by object.
final class TestArchive {
  private var objects: [PropertyList] = [.string("$null")]

  func add(_ value: PropertyList) -> PropertyList {
    objects.append(value)
    return .uid(UInt64(objects.count - 1))
  }

  func instance(_ name: String, _ fields: [String: PropertyList]) -> PropertyList {
    var fields = fields
    fields["$class"] = add(.dictionary(["$classname": .string(name), "$classes": .array([.string(name), .string("NSObject")])]))
    return add(.dictionary(fields))
  }

  func list(_ parts: [PropertyList]) -> PropertyList { instance("NSMutableArray", ["NS.objects": .array(parts)]) }

  func bytes(root: PropertyList) -> [UInt8] {
    PropertyList.dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": .dictionary(["root": root]),
      "$objects": .array(objects),
    ]).binary
  }

  // MARK: Expressions

  func code(_ expression: TestExpression) -> PropertyList {
    switch expression {
    case .variable(let name): instance("NSVariableExpression", ["NSVariable": add(.string(name)), "NSExpressionType": .integer(2)])
    case .constant(let value):
      instance("NSConstantValueExpression", ["NSConstantValue": code(constant: value), "NSExpressionType": .integer(0)])
    case .path(let operand, let path):
      instance(
        "NSKeyPathExpression",
        [
          "NSOperand": code(operand), "NSSelectorName": add(.string("valueForKeyPath:")), "NSExpressionType": .integer(4),
          "NSArguments": list([
            instance("NSKeyPathSpecifierExpression", ["NSKeyPath": add(.string(path)), "NSExpressionType": .integer(10)])
          ]),
        ])
    case .method(let operand, let selector, let arguments): call(code(operand), selector, arguments)
    case .function(let selector, let arguments):
      call(
        instance(
          "NSConstantValueExpression",
          ["NSConstantValueClassName": add(.string("_NSPredicateUtilities")), "NSExpressionType": .integer(0)]), selector, arguments)
    case .aggregate(let parts):
      instance("NSAggregateExpression", ["NSCollection": list(parts.map { code($0) }), "NSExpressionType": .integer(14)])
    case .conditional(let predicate, let first, let second):
      instance(
        "NSTernaryExpression",
        [
          "NSPredicate": code(predicate: predicate), "NSTrueExpression": code(first), "NSFalseExpression": code(second),
          "NSExpressionType": .integer(20),
        ])
    case .subquery(let collection, let variable, let predicate):
      instance(
        "NSSubqueryExpression",
        [
          "NSExpression": code(collection), "NSVariable": add(.string(variable)), "NSSubpredicate": code(predicate: predicate),
          "NSExpressionType": .integer(13),
        ])
    }
  }

  private func code(constant: PropertyList) -> PropertyList {
    switch constant {
    case .null: .uid(0)
    case .array(let values): list(values.map { add($0) })
    default: add(constant)
    }
  }

  private func code(predicate: TestPredicate) -> PropertyList {
    switch predicate {
    case .truth(let isTrue): instance(isTrue ? "NSTruePredicate" : "NSFalsePredicate", [:])
    case .compound(let type, let parts):
      instance(
        "NSCompoundPredicate", ["NSCompoundPredicateType": .integer(type), "NSSubpredicates": list(parts.map { code(predicate: $0) })])
    case .comparison(let left, let type, let right, let options, let modifier):
      instance(
        "NSComparisonPredicate",
        [
          "NSLeftExpression": code(left), "NSRightExpression": code(right),
          "NSPredicateOperator": instance(
            "NSPredicateOperator",
            ["NSOperatorType": .integer(type), "NSOptions": .integer(options), "NSModifier": .integer(modifier)]),
        ])
    }
  }

  private func call(_ operand: PropertyList, _ selector: String, _ arguments: [TestExpression]) -> PropertyList {
    instance(
      "NSFunctionExpression",
      [
        "NSOperand": operand, "NSSelectorName": add(.string(selector)), "NSExpressionType": .integer(4),
        "NSArguments": list(arguments.map { code($0) }),
      ])
  }
}

/// A `.cdm`: a mapping model as Xcode compiles it.
struct CompiledMapping {
  var old: ManagedObjectModel
  let new: ManagedObjectModel
  /// Fields to add to each entity mapping, and to each property mapping.
  var entityFields: [String: PropertyList] = [:]
  var propertyFields: [String: PropertyList] = [:]
  let archive = TestArchive()
  private var mappings: [PropertyList] = []

  init(_ old: ManagedObjectModel, _ new: ManagedObjectModel) { (self.old, self.new) = (old, new) }

  private func text(_ text: String?) -> PropertyList { text.map { archive.add(.string($0)) } ?? .uid(0) }

  private func hash(_ name: String?, _ model: ManagedObjectModel) -> PropertyList {
    name.flatMap { model.entity(named: $0)?.versionHash }.map { archive.add(.data($0)) } ?? .uid(0)
  }

  private func properties(_ expressions: KeyValuePairs<String, TestExpression?>) -> PropertyList {
    archive.list(
      expressions.map { name, expression in
        var fields = ["NSDestinationPropertyName": text(name), "NSValueExpression": expression.map { archive.code($0) } ?? .uid(0)]
        fields.merge(propertyFields) { $1 }
        return archive.instance("NSPropertyMapping", fields)
      })
  }

  /// Adds an entity mapping.
  mutating func map(
    _ source: String?, to destination: String?, name: String? = nil, policy: String? = nil, filter: String = "TRUEPREDICATE",
    attributes: KeyValuePairs<String, TestExpression?> = [:], relationships: KeyValuePairs<String, TestExpression?> = [:]
  ) {
    let manager = TestExpression.variable("manager")
    var fields: [String: PropertyList] = [
      "NSMappingName": text(name), "NSMappingType": .integer(source == nil ? 2 : destination == nil ? 3 : 5),
      "NSSourceEntityName": text(source), "NSSourceEntityVersionHash": hash(source, old), "NSDestinationEntityName": text(destination),
      "NSDestinationEntityVersionHash": hash(destination, new), "NSEntityMigrationPolicyClassName": text(policy),
      "NSAttributeMappings": properties(attributes), "NSRelationshipMappings": properties(relationships), "NSUserInfo": .uid(0),
    ]
    if let source {
      let request = TestExpression.method(
        manager, "fetchRequestForSourceEntityNamed:predicateString:", [.text(source), .text(filter)])
      fields["NSSourceExpression"] = archive.instance(
        "NSFetchRequestExpression",
        [
          "NSFRExpression": archive.code(request), "NSMOCExpression": archive.code(.method(manager, "sourceContext", [])),
          "NSCountOnlyFlag": .bool(false), "NSExpressionType": .integer(50),
        ])
    }
    fields.merge(entityFields) { $1 }
    mappings.append(archive.instance("NSEntityMapping", fields))
  }

  var bytes: [UInt8] {
    archive.bytes(root: archive.instance("NSMappingModel", ["NSEntityMappings": archive.list(mappings)]))
  }

  /// Writes the file, and returns its path.
  func write(to folder: TemporaryFolder, _ name: String = "Mapping") throws -> String {
    try TemporaryFolder.write(bytes, to: folder.file("\(name).cdm"))
    return folder.file("\(name).cdm")
  }
}
