import HoldfastStore

/// The Swift names of a model's entities and properties.
struct SwiftNames: Sendable {
  /// The class of each entity, by the entity's name.
  private var classes: [String: String] = [:]
  /// The struct of each composite, by the composite's name.
  private var structs: [String: String] = [:]
  /// All names of types: those of the generated code, the classes and the structs.
  private var allTypes: Set<String> = []
  /// The name in code of each property and element that can't have its own, by its name in the model.
  private var changedProperties: [String: String] = [:]

  /// - Parameters:
  ///   - model: The model.
  ///   - list: The name of the type with the list of classes.
  init(_ model: ManagedObjectModel, list: String) {
    // In its code, the name of the list would be found instead of the class.
    var taken = SwiftNames.types.union(["classes", list])
    func free(_ candidates: [String]) -> String {
      var name =
        candidates.first { SwiftNames.isIdentifier($0) && !taken.contains($0) && !SwiftNames.keywords.contains($0) }
        ?? SwiftNames.identifier(candidates.last ?? "")
      while taken.contains(name) || SwiftNames.keywords.contains(name) || name == "_" { name += "Object" }
      taken.insert(name)
      return name
    }
    for entity in model.declarations.sorted(by: { $0.name < $1.name }) {
      // A class name can have the name of a module before it.
      let named = entity.managedObjectClassName?.split(separator: ".").last.map(String.init)
      classes[entity.name] = free([named, entity.name].compactMap { $0 }.filter { $0 != "NSManagedObject" })
    }
    taken.remove("classes")
    for composite in model.composites.sorted(by: { $0.name < $1.name }) { structs[composite.name] = free([composite.name]) }
    allTypes = taken.subtracting([list])
    changedProperties = changedNames(SwiftNames.propertyNames(model))
  }

  /// The names of all properties and elements.
  private static func propertyNames(_ model: ManagedObjectModel) -> Set<String> {
    var names = Set(model.composites.flatMap { $0.elements.map(\.name) })
    for entity in model.declarations {
      names.formUnion(entity.attributes.map(\.name))
      names.formUnion(entity.relationships.map(\.name))
      names.formUnion(entity.fetchedProperties.map(\.name))
    }
    return names
  }

  /// Other names for properties that can't have their own. No two are equal in the entire model, because classes inherit properties.
  private func changedNames(_ names: Set<String>) -> [String: String] {
    var taken = names.filter(canBeProperty), changed: [String: String] = [:]
    for name in names.subtracting(taken).sorted(by: SwiftText.precedes) {
      var other = SwiftNames.identifier(name) + "Attribute"
      while !taken.insert(other).inserted { other += "_" }
      changed[name] = other
    }
    return changed
  }

  private func canBeProperty(_ name: String) -> Bool {
    !SwiftNames.members.contains(name) && !allTypes.contains(name) && SwiftNames.isIdentifier(name)
  }

  func className(_ entity: String) -> String { classes[entity] ?? entity }
  func structName(_ composite: String) -> String { structs[composite] ?? composite }

  /// The name of a property in code. One that Swift or `ManagedObject` uses itself, or that is also the name of a type, gets a suffix.
  func property(_ name: String) -> String {
    if let other = changedProperties[name] { return other }
    return SwiftNames.keywords.contains(name) ? "`\(name)`" : name
  }

  /// The names that no function beside the list of classes can have: in its code, the compiler would find the function instead of the type.
  ///
  /// `FetchRequest`, Xcode's name for a new template, is only the type of results there.
  var namesBesideFunctions: Set<String> { allTypes.subtracting(["FetchRequest"]).union(["classes"]) }

  /// The name of the type with the list of a model's classes.
  static func list(_ name: String) -> String { capitalized(name) + "ModelClasses" }

  /// The name of the function of a fetch request template.
  static func template(_ name: String) -> String {
    let name = identifier(name)
    return name == "classes" || members.contains(name) ? name + "Request" : keywords.contains(name) ? "`\(name)`" : name
  }

  /// The name of the parameter for a variable of a predicate.
  func parameter(_ variable: String) -> String {
    let name = SwiftNames.identifier(variable)
    let isTaken = allTypes.contains(name) || SwiftNames.members.contains(name)
    return isTaken ? name + "Value" : SwiftNames.keywords.contains(name) ? "`\(name)`" : name
  }

  /// A property's name as the end of another one, such as `Walks` in `addToWalks`.
  static func capitalized(_ name: String) -> String { identifier(name.prefix(1).uppercased() + name.dropFirst()) }

  private static func isIdentifier(_ name: String) -> Bool { !name.isEmpty && identifier(name) == name }

  /// The name with an underscore in the place of each character that an identifier can't have.
  private static func identifier(_ name: String) -> String {
    let text = String(name.map { $0 == "_" || $0.isLetter || $0.isNumber ? $0 : "_" })
    return text.first?.isNumber == false ? text : "_" + text
  }

  /// Names of types that generated code uses, or that can't be declared.
  private static let types: Set<String> = [
    "Any", "AnyObject", "Array", "AttributeOption", "Bool", "ClassBinding", "ClosedRange", "CompositeAttributeValue", "CompositeElements",
    "Data", "Date", "Decimal", "Dictionary", "Double", "EntityDeclaration", "FetchIndexDescription", "FetchIndexElement", "FetchPredicate",
    "FetchRequest", "FetchRequestDescription", "FetchedPropertyDescription", "Float", "Int", "Int16", "Int32", "Int64", "ManagedObject",
    "ManagedObjectContext", "ManagedObjectID", "ManagedObjectModel", "ManagedObjectSnapshot", "Optional", "OrderedToMany", "Properties",
    "PropertyDeclaration", "Protocol", "RelationshipOption", "Self", "Sequence", "Slots", "SlotCounts", "SlotIndex", "Snapshot",
    "StoreValue",
    "String", "ToMany", "ToManyIndex", "TransformableSlot", "TransientIndex", "TransientLinkIndex", "Type", "URL", "UUID", "Void",
  ]

  /// Properties of `ManagedObject`, methods without parameters, and names that a property can't have even in backticks.
  static let members: Set<String> = [
    "awakeFromFetch", "awakeFromInsert", "changedValues", "debugDescription", "declaration", "description", "didSave", "didTurnIntoFault",
    "entity", "entityName", "faultError", "finishInsertion", "hasChanges", "hashValue", "init", "isDeleted", "isFault", "isInaccessible",
    "isInserted", "isUpdated", "managedObjectContext", "objectID", "prepareForDeletion", "self", "Self", "setComputedDefaults", "Type",
    "validateForDelete", "validateForInsert", "validateForUpdate", "willSave", "willTurnIntoFault", "_",
  ]

  private static let keywords: Set<String> = [
    "Any", "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do", "else", "enum",
    "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import", "in", "inout", "internal", "is", "let",
    "nil",
    "operator", "precedencegroup", "private", "protocol", "public", "repeat", "rethrows", "return", "static", "struct", "subscript",
    "super",
    "switch", "throw", "throws", "true", "try", "typealias", "var", "where", "while",
    // At the beginning of an accessor's body, these are accessors or operators.
    "__consuming", "_modify", "_read", "await", "borrow", "borrowing", "consuming", "copy", "didSet", "get", "modify", "mutate",
    "mutating", "nonmutating", "read", "set", "unsafe", "unsafeAddress", "unsafeMutableAddress", "willSet", "yield",
  ]
}
