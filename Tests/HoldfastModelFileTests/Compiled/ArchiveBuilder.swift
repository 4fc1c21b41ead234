import HoldfastPropertyList
import HoldfastStore

/// Builds a keyed archive object by object.
final class ArchiveBuilder {
  private var objects: [PropertyList] = [.string("$null")]
  private var classes: [String: PropertyList] = [:]

  /// No object.
  static let null = PropertyList.uid(0)

  /// Reserves an index for an object that others reference before it is complete.
  func reserve() -> PropertyList { add(.null) }

  private func add(_ value: PropertyList) -> PropertyList {
    objects.append(value)
    return .uid(UInt64(objects.count - 1))
  }

  private func classReference(_ name: String) -> PropertyList {
    if let known = classes[name] { return known }
    let new = add(.dictionary(["$classname": .string(name), "$classes": .array([.string(name), .string("NSObject")])]))
    classes[name] = new
    return new
  }

  func text(_ text: String) -> PropertyList { add(.string(text)) }

  func plain(_ value: PropertyList) -> PropertyList { add(value) }

  /// An object of a class, at a reserved index if there is one.
  @discardableResult func object(_ name: String, _ values: [String: PropertyList], at place: PropertyList? = nil) -> PropertyList {
    var values = values
    values["$class"] = classReference(name)
    guard case .uid(let number)? = place else { return add(.dictionary(values)) }
    objects[Int(number)] = .dictionary(values)
    return .uid(number)
  }

  func list(_ references: [PropertyList], as name: String = "NSArray") -> PropertyList { object(name, ["NS.objects": .array(references)]) }

  func dictionary(_ entries: KeyValuePairs<String, PropertyList>) -> PropertyList {
    object("NSDictionary", ["NS.keys": .array(entries.map { text($0.key) }), "NS.objects": .array(entries.map(\.value))])
  }

  func archive(root: PropertyList) -> PropertyList {
    .dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": .dictionary(["root": root]),
      "$objects": .array(objects),
    ])
  }

  // MARK: Expressions

  func selfExpression() -> PropertyList { object("NSSelfExpression", ["NSExpressionType": .integer(1)]) }

  func keyPath(_ path: String, of operand: PropertyList? = nil) -> PropertyList {
    let specifier = object("NSKeyPathSpecifierExpression", ["NSExpressionType": .integer(10), "NSKeyPath": text(path)])
    return object(
      "NSKeyPathExpression",
      [
        "NSExpressionType": .integer(3), "NSSelectorName": text("valueForKeyPath:"), "NSOperand": operand ?? selfExpression(),
        "NSArguments": list([specifier]),
      ])
  }

  func constant(_ value: PropertyList) -> PropertyList {
    object("NSConstantValueExpression", ["NSExpressionType": .integer(0), "NSConstantValue": value])
  }

  func function(_ name: String, _ arguments: [PropertyList]) -> PropertyList {
    let operand = object("NSConstantValueExpression", ["NSConstantValueClassName": text("_NSPredicateUtilities")])
    return object("NSFunctionExpression", ["NSSelectorName": text(name), "NSOperand": operand, "NSArguments": list(arguments)])
  }

  func comparison(_ left: PropertyList, _ type: Int64, _ right: PropertyList, options: Int64 = 0, modifier: Int64 = 0) -> PropertyList {
    let by = object(
      "NSComparisonPredicateOperator",
      ["NSOperatorType": .integer(type), "NSOptions": .integer(options), "NSModifier": .integer(modifier)])
    return object("NSComparisonPredicate", ["NSLeftExpression": left, "NSRightExpression": right, "NSPredicateOperator": by])
  }

  func compound(_ type: Int64, _ parts: [PropertyList]) -> PropertyList {
    object("NSCompoundPredicate", ["NSCompoundPredicateType": .integer(type), "NSSubpredicates": list(parts)])
  }
}
