import HoldfastStore

/// The class of one entity.
struct EntityCode {
  private let entity: EntityDescription
  private let model: ManagedObjectModel
  private let names: SwiftNames
  private let accessLevel: ModelCode.Access
  private let attributes: [AttributeCode]
  private let relationships: [RelationshipCode]

  init(_ entity: EntityDescription, _ model: ManagedObjectModel, _ names: SwiftNames, _ access: ModelCode.Access) {
    (self.entity, self.model, self.names, accessLevel) = (entity, model, names, access)
    attributes = entity.attributes.sorted { SwiftText.precedes($0.name, $1.name) }.map { AttributeCode(attribute: $0, names: names) }
    relationships = entity.relationships.sorted { SwiftText.precedes($0.name, $1.name) }.map {
      RelationshipCode(relationship: $0, names: names)
    }
  }

  /// The name of the class.
  var className: String { names.className(entity.name) }

  private var superclass: String { entity.superentity.map(names.className) ?? "ManagedObject" }
  private var access: String { accessLevel.prefix }
  /// The types of the attributes, and of the initializer's parameters.
  var types: [String] { (attributes + initialAttributes).map(\.wrappedType) }
  private var isFinal: Bool { !entity.isAbstract && !model.declarations.contains { $0.superentity == entity.name } }

  /// What the class can't declare.
  var notes: [String] {
    entity.fetchedProperties.compactMap { property in
      problem(of: property).map { "\(entity.name).\(property.name): The fetched property is declared, but has no accessor. \($0)" }
    }
  }

  /// Why the objects of a fetched property can't be fetched; nil if they can.
  private func problem(of property: FetchedPropertyDescription) -> String? {
    model.entity(named: entity.name).flatMap { property.problem(of: $0, in: model) }
  }

  // MARK: Files

  var classFile: String { SwiftText.file(classSource, accessLevel, isKept: true) }
  var propertiesFile: String { SwiftText.file(propertiesSource, accessLevel, types: types) }

  /// The class itself, to which people add methods.
  var classSource: String {
    let kind = isFinal ? "\(accessLevel.typePrefix)final class" : accessLevel == .public ? "open nonisolated class" : "nonisolated class"
    let override = (isFinal ? access : accessLevel == .public ? "open " : "") + "override"
    return """
      /// An object of the entity \(entity.name).
      \(kind) \(className): \(superclass) {
        \(override) class var entityName: String { Properties.entityName }
        \(override) class var declaration: EntityDeclaration? { Properties.declaration }
      }

      """
  }

  /// The properties, in an extension.
  var propertiesSource: String {
    let sections =
      attributes.map { $0.property(access) } + relationships.map { $0.property(access) } + relationships.map { $0.methods(access) }
      + fetchedProperties + [snapshot, initializer ?? "", slots, slotCounts, declaration]
    return "nonisolated extension \(className) {\n" + SwiftText.indented(sections.filter { !$0.isEmpty }.joined(separator: "\n\n"))
      + "\n}\n"
  }

  /// The accessors of fetched properties.
  private var fetchedProperties: [String] {
    entity.fetchedProperties.filter { problem(of: $0) == nil }.sorted { SwiftText.precedes($0.name, $1.name) }.map { property in
      let request = property.fetchRequest, destination = names.className(request.entity)
      let predicate = request.predicateFormat.map { "\n///\n/// The predicate of its request is `\(SwiftText.comment($0))`." } ?? ""
      let call = "fetchedObjects(forProperty: \(SwiftText.literal(property.name)), as: \(destination).self)"
      return "/// Objects of \(request.entity). Each access fetches them.\(predicate)\n"
        + "\(access)var \(names.property(property.name)): [\(destination)] {\n"
        + SwiftText.indented(SwiftText.member("get throws", "try \(call)", margin: 4)) + "\n}"
    }
  }

  // MARK: Creating

  private var snapshot: String {
    """
    /// The values of an object that can be sent to other threads, encoded and applied again.
    \(access)typealias Snapshot = ManagedObjectSnapshot<\(className)>
    """
  }

  /// The attributes that the initializer sets, also inherited ones. Empty for a class without an initializer.
  private var initialAttributes: [AttributeCode] {
    guard isFinal else { return [] }
    return (superentities + [entity]).flatMap(\.attributes).sorted { SwiftText.precedes($0.name, $1.name) }
      .map { AttributeCode(attribute: $0, names: names) }.filter { !$0.attribute.isTransient && !$0.attribute.isDerived }
  }

  /// An initializer with all attributes and to-one relationships. Classes with subclasses have none, because these would inherit it.
  private var initializer: String? {
    guard isFinal else { return nil }
    let all = initialAttributes
    let toOne = (superentities + [entity]).flatMap { entity in
      entity.relationships.map { RelationshipCode(relationship: $0, names: names) }
    }
    .filter { !$0.relationship.isToMany }.sorted { SwiftText.precedes($0.relationship.name, $1.relationship.name) }
    let parameters =
      ["context managedObjectContext: ManagedObjectContext"]
      + all.map { attribute in
        if attribute.isRequired { return "\(attribute.name): \(attribute.type)" }
        if let literal = attribute.defaultLiteral { return "\(attribute.name): \(attribute.type) = \(literal)" }
        return "\(attribute.name): \(attribute.wrappedType)? = nil"
      } + toOne.map { "\($0.name): \($0.type) = nil" }
    // A parameter that is left out keeps what the model and `setComputedDefaults` set.
    func assignment(_ name: String, isOmissible: Bool) -> String {
      let text = "self.\(name) = \(name)"
      return isOmissible ? SwiftText.member("if let \(name)", text, margin: 4) : text
    }
    let lines =
      all.map { assignment($0.name, isOmissible: !$0.isRequired && $0.defaultLiteral == nil) }
      + toOne.map { assignment($0.name, isOmissible: true) }
    return "/// Inserts a new object.\n" + SwiftText.call("\(access)convenience init", parameters, end: " {\n")
      + SwiftText.indented((["self.init(insertedInto: managedObjectContext)"] + lines + ["finishInsertion()"]).joined(separator: "\n"))
      + "\n}"
  }

  private var superentities: [EntityDescription] {
    var (chain, next): ([EntityDescription], String?) = ([], entity.superentity)
    while let name = next, chain.count < model.declarations.count, let found = model.declarations.first(where: { $0.name == name }) {
      chain.insert(found, at: 0)
      next = found.superentity
    }
    return chain
  }

  // MARK: Slots

  /// The properties with slots in a row, in the order of their slots: names, and numbers of slots as expressions.
  private var placed: [(modelName: String, name: String, count: String)] {
    let all =
      attributes.filter(\.hasSlots).map { ($0.attribute.name, $0.name, $0.slotCount) }
      + relationships.filter { !$0.relationship.isToMany && !$0.relationship.isTransient }.map {
        ($0.relationship.name, $0.name, "slotCount(of: \($0.type).self)")
      }
    return all.sorted { SwiftText.precedes($0.0, $1.0) }
  }

  private var transients: [AttributeCode] { attributes.filter(\.attribute.isTransient) }
  private var toMany: [RelationshipCode] { relationships.filter { $0.relationship.isToMany && !$0.relationship.isTransient } }
  private var transientLinks: [RelationshipCode] { relationships.filter(\.relationship.isTransient) }

  private var slots: String {
    var lines: [String] = []
    // In `Slots`, the name of the function would be that of a property with this name.
    let prefix = (attributes.map(\.name) + relationships.map(\.name)).contains("slotCount") ? "ManagedObject." : ""
    for (index, property) in placed.enumerated() {
      let start =
        index == 0
        ? "SlotIndex(\(superclass).SlotCounts.slots)" : "\(placed[index - 1].name).advanced(by: \(prefix)\(placed[index - 1].count))"
      lines.append(SwiftText.member("\(access)static var \(property.name): SlotIndex", start, margin: 4))
    }
    func list(_ names: [String], _ type: String, _ count: String) {
      for (index, name) in names.enumerated() {
        lines.append(
          SwiftText.member(
            "\(access)static var \(name): \(type)", "\(type)(\(superclass).SlotCounts.\(count) + \(index))", margin: 4))
      }
    }
    list(toMany.map(\.name), "ToManyIndex", "toMany")
    list(transients.map(\.name), "TransientIndex", "transients")
    list(transientLinks.map(\.name), "TransientLinkIndex", "transientLinks")
    return "/// Where an object keeps its properties.\n\(access)enum Slots {\n" + lines.map { "\(SwiftText.indented($0))\n" }.joined() + "}"
  }

  private var slotCounts: String {
    let slots = placed.last.map { "Slots.\($0.name).rawValue + \($0.count)" } ?? "\(superclass).SlotCounts.slots"
    func line(_ name: String, _ body: String) -> String {
      SwiftText.indented(SwiftText.member("\(access)static var \(name): Int", body, margin: 4)) + "\n"
    }
    func count(_ name: String, _ own: Int) -> String {
      line(name, "\(superclass).SlotCounts.\(name)\(own == 0 ? "" : " + \(own)")")
    }
    return "/// The numbers of an object's properties, for subclasses.\n\(access)enum SlotCounts {\n" + line("slots", slots)
      + count("toMany", toMany.count) + count("transients", transients.count) + count("transientLinks", transientLinks.count) + "}"
  }

  // MARK: Declaration

  private var declaration: String {
    var lines = ["var declaration = EntityDeclaration(\(className).self)"]
    for text in attributes.map({ $0.declaration(in: className) }) + relationships.map({ $0.declaration(in: className) }) {
      lines.append(SwiftText.append(text, to: "declaration.properties"))
    }
    if entity.isAbstract { lines.append("declaration.isAbstract = true") }
    for constraint in entity.uniquenessConstraints {
      lines.append("declaration.uniquenessConstraints.append(\(SwiftText.literal(constraint)))")
    }
    for index in entity.indexes { lines.append(SwiftText.append(EntityCode.index(index), to: "declaration.indexes")) }
    for property in entity.fetchedProperties { lines += EntityCode.fetchedProperty(property) }
    if let text = entity.renamingIdentifier { lines.append("declaration.renamingIdentifier = \(SwiftText.literal(text))") }
    if let text = entity.versionHashModifier { lines.append("declaration.versionHashModifier = \(SwiftText.literal(text))") }
    if !entity.userInfo.isEmpty { lines.append("declaration.userInfo = \(SwiftText.literal(entity.userInfo))") }
    let configurations = model.configurations.filter { $0.entities.contains(entity.name) }.map(\.name).sorted()
    if !configurations.isEmpty { lines.append("declaration.configurations = \(SwiftText.literal(configurations))") }
    // A class that was written for another superentity doesn't compile.
    let check = entity.superentity == nil ? [] : ["_ = \(className).self as \(superclass).Type"]
    if lines.count == 1 { lines[0] = "let declaration = EntityDeclaration(\(className).self)" }
    return "/// What the model has of the class.\n\(access)enum Properties {\n  /// The name of the entity.\n"
      + SwiftText.indented(SwiftText.member("\(access)static var entityName: String", SwiftText.literal(entity.name), margin: 4))
      + "\n  /// The entity.\n"
      + "  \(access)static var declaration: EntityDeclaration {\n"
      + SwiftText.indented((check + lines + ["return declaration"]).joined(separator: "\n"), 4) + "\n  }\n}"
  }

  private static func index(_ index: FetchIndexDescription) -> String {
    let elements = index.elements.map { element in
      let order = element.isAscending ? "" : ", isAscending: false", kind = element.kind == .binary ? "" : ", kind: .\(element.kind)"
      return "FetchIndexElement(\(SwiftText.literal(element.property))\(order)\(kind))"
    }
    let list = elements.count == 1 ? "[\(elements[0])]" : "[\n\(elements.map { "    \($0),\n" }.joined())  ]"
    let ignored = index.isIgnored ? ",\n  isIgnored: true" : ""
    return "FetchIndexDescription(\n  \(SwiftText.literal(index.name)),\n  elements: \(list)\(ignored)\n)"
  }

  /// The statements that add a fetched property.
  private static func fetchedProperty(_ property: FetchedPropertyDescription) -> [String] {
    let request = property.fetchRequest
    let predicate = request.predicateFormat.map { ["predicateFormat: \(SwiftText.literal($0))"] } ?? []
    let name = "request\(SwiftNames.capitalized(property.name))"
    let parts = [SwiftText.literal(request.name), "entity: \(SwiftText.literal(request.entity))"] + predicate
    var lines = [
      "var \(name) = \(SwiftText.call("FetchRequestDescription", parts, width: 70))",
      "\(name).resultType = .\(request.resultType)", "\(name).fetchLimit = \(request.fetchLimit)",
      "\(name).fetchBatchSize = \(request.fetchBatchSize)", "\(name).includesSubentities = \(request.includesSubentities)",
      "\(name).includesPropertyValues = \(request.includesPropertyValues)",
      "\(name).includesPendingChanges = \(request.includesPendingChanges)",
      "\(name).returnsObjectsAsFaults = \(request.returnsObjectsAsFaults)",
      "\(name).returnsDistinctResults = \(request.returnsDistinctResults)",
    ]
    var arguments = [SwiftText.literal(property.name), name]
    arguments.append("isOptional: \(property.isOptional)")
    arguments.append("isTransient: \(property.isTransient)")
    if let text = property.versionHashModifier { arguments.append("versionHashModifier: \(SwiftText.literal(text))") }
    if let text = property.renamingIdentifier { arguments.append("renamingIdentifier: \(SwiftText.literal(text))") }
    if !property.userInfo.isEmpty { arguments.append("userInfo: \(SwiftText.literal(property.userInfo))") }
    lines.append(
      SwiftText.append(SwiftText.call("FetchedPropertyDescription", arguments, width: 60), to: "declaration.fetchedProperties"))
    return lines
  }
}

extension SwiftText {
  /// The order of names in a model.
  static func precedes(_ a: String, _ b: String) -> Bool { Array(a.utf8).lexicographicallyPrecedes(Array(b.utf8)) }
}
