#if Macros
  import SwiftSyntax

  /// The members that `@Entity` adds to a class.
  struct EntityMembers {
    let entity: EntityClass

    /// The source of each member.
    var all: [String] {
      [slots, slotCounts, entityName, declaration] + (computedDefaults.map { [$0] } ?? []) + (initializer.map { [$0] } ?? []) + [snapshot]
    }

    private var access: String { entity.access }

    // MARK: Slots

    /// Each property's place: an expression that the compiler folds to a constant.
    private var slots: String {
      let sorted = entity.sorted
      var lines: [String] = []
      var before: ManagedProperty?
      // In `Slots`, the name of the function would be that of a property with this name.
      let prefix = sorted.contains { $0.reference == "slotCount" } ? "ManagedObject." : ""
      for property in sorted where property.hasSlots {
        lines.append("\(access)static var \(property.reference): SlotIndex { \(start(after: before, prefix)) }")
        before = property
      }
      lines += indexes(sorted.filter { $0.kind == .toMany }, "ToManyIndex", "toMany")
      lines += indexes(sorted.filter { $0.kind == .transient }, "TransientIndex", "transients")
      let transientLinks = sorted.filter { $0.kind == .transientToOne || $0.kind == .transientToMany }
      lines += indexes(transientLinks, "TransientLinkIndex", "transientLinks")
      return "\(access)enum Slots {\n" + lines.map { "  \($0)\n" }.joined() + "}"
    }

    private func start(after property: ManagedProperty?, _ prefix: String) -> String {
      guard let property else { return "SlotIndex(\(entity.superclass).SlotCounts.slots)" }
      return "\(property.reference).advanced(by: \(slotCount(of: property, prefix)))"
    }

    private func slotCount(of property: ManagedProperty, _ prefix: String = "") -> String {
      property.isTransformed ? "1" : "\(prefix)slotCount(of: \(property.type.replacingSelf(by: entity.name)).self)"
    }

    private func indexes(_ properties: [ManagedProperty], _ type: String, _ count: String) -> [String] {
      properties.enumerated().map { index, property in
        "\(access)static var \(property.reference): \(type) { \(type)(\(entity.superclass).SlotCounts.\(count) + \(index)) }"
      }
    }

    private var slotCounts: String {
      let last = entity.sorted.last(where: \.hasSlots)
      let slots = last.map { "Slots.\($0.reference).rawValue + \(slotCount(of: $0))" } ?? "\(entity.superclass).SlotCounts.slots"
      func line(_ name: String, _ kinds: ManagedProperty.Kind...) -> String {
        let own = entity.properties.filter { kinds.contains($0.kind) }.count
        return "  \(access)static var \(name): Int { \(entity.superclass).SlotCounts.\(name)\(own == 0 ? "" : " + \(own)") }\n"
      }
      return "\(access)enum SlotCounts {\n  \(access)static var slots: Int { \(slots) }\n" + line("toMany", .toMany)
        + line("transients", .transient) + line("transientLinks", .transientToOne, .transientToMany) + "}"
    }

    // MARK: Declaration

    private var declaration: String {
      var lines = ["var declaration = EntityDeclaration(\(entity.name).self)"]
      lines += entity.properties.map { "declaration.properties.append(\(self.property($0)))" }
      lines += entity.arguments.labelled.filter { $0.label != "name" }.map { "declaration.\($0.label) = \($0.value)" }
      for names in entity.uniquenessConstraints { lines.append("declaration.uniquenessConstraints.append(\(list(names)))") }
      for (name, names) in zip(indexNames, entity.indexes) {
        lines.append("declaration.indexes.append(FetchIndexDescription(\"\(name)\", \(list(names))))")
      }
      // A variable that isn't changed is a warning.
      if lines.count == 1 { lines[0] = "let declaration = EntityDeclaration(\(entity.name).self)" }
      return "\(entity.overriddenAccess)override class var declaration: EntityDeclaration? {\n"
        + (lines + ["return declaration"]).map { "  \($0)\n" }.joined() + "}"
    }

    /// The names of the indexes: the names of their properties. Those of `a_b` and of `a` and `b` differ, ignoring case, as in a model.
    private var indexNames: [String] {
      var lists: [String: [String]] = [:]
      return entity.indexes.map { list in
        var name = list.joined(separator: "_")
        while let other = lists[name.lowercased()], other != list { name += "_" }
        lists[name.lowercased()] = list
        return name
      }
    }

    private func list(_ names: [String]) -> String { "[" + names.map { "\"\($0)\"" }.joined(separator: ", ") + "]" }

    private func property(_ property: ManagedProperty) -> String {
      let function =
        switch property.kind {
        case .transformable: ".transformable"
        case .codable: ".codable"
        case .transient: ".transient"
        case .value, .toMany, .transientToOne, .transientToMany: ".property"
        }
      var arguments = ["\"\(property.name)\"", "\\\(entity.name).\(property.reference)"] + property.arguments
      if property.kind == .value, let initial = property.initial {
        if initial.kind == .literal { arguments.append("default: \(initial.text)") }
        // With the type, because `.none` for the parameter, an optional, would be nil.
        if initial.kind == .member { arguments.append("initially: \(initial.text) as \(property.type.text)") }
      }
      return "\(function)(\(arguments.joined(separator: ", ")))"
    }

    /// Every class has one, because it would inherit that of its superclass.
    private var entityName: String {
      let argument = entity.arguments.labelled.first { $0.label == "name" }?.value
      let name = argument ?? "\"\(entity.name.filter { $0 != "`" })\""
      return "\(entity.overriddenAccess)override class var entityName: String { \(name) }"
    }

    // MARK: New objects

    private var computedDefaults: String? {
      let computed = entity.properties.filter(isComputed)
      if computed.isEmpty { return nil }
      return "\(entity.overriddenAccess)override func setComputedDefaults() {\n  super.setComputedDefaults()\n"
        + computed.map { "  \($0.reference) = \($0.initial?.text ?? "nil")\n" }.joined() + "}"
    }

    /// Whether the model can't have the initial value of a property, and the accessor doesn't have it either.
    private func isComputed(_ property: ManagedProperty) -> Bool {
      guard let initial = property.initial, initial.kind != .none else { return false }
      return switch property.kind {
      case .value: initial.kind != .literal
      case .transformable: true
      case .codable: property.type.isOptional || !initial.isLiteralOrCollection
      case .transient: property.type.isOptional
      case .toMany, .transientToOne, .transientToMany: false
      }
    }

    /// An initializer with the class's own properties; nil if the class isn't final, or has one with the same parameters.
    private var initializer: String? {
      guard entity.isFinal else { return nil }
      let (access, properties) = parameters
      let signature =
        [InitializerParameter("context", "ManagedObjectContext")]
        + properties.map { property -> InitializerParameter in
          let isOptional = property.initial.map { $0.kind != .literal && $0.kind != .none } ?? false
          return InitializerParameter(property.reference, isOptional ? TypeText(property.type.wrapped).optional : property.type.text)
        }
      if entity.initializers.contains(signature) { return nil }
      let list = properties.map { property -> String in
        guard let initial = property.initial, initial.kind != .none else {
          return ", \(property.reference): \(property.type.text)\(property.type.isOptional ? " = nil" : "")"
        }
        if initial.kind == .literal { return ", \(property.reference): \(property.type.text) = \(initial.text)" }
        return ", \(property.reference): \(TypeText(property.type.wrapped).optional) = nil"
      }
      let lines = properties.map { property -> String in
        let name = property.reference, isOmissible = ![nil, .literal, InitialValue.Kind.none].contains(property.initial?.kind)
        return isOmissible ? "  if let \(name) { self.\(name) = \(name) }\n" : "  self.\(name) = \(name)\n"
      }
      return "\(access)convenience init(context managedObjectContext: ManagedObjectContext\(list.joined())) {\n"
        + "  self.init(insertedInto: managedObjectContext)\n" + lines.joined() + "  finishInsertion()\n}"
    }

    /// The properties that the initializer sets, and its access: as wide as the class's, unless a required property is less accessible.
    private var parameters: (access: String, properties: [ManagedProperty]) {
      let all = entity.properties.filter { ($0.hasSlots || $0.kind == .transientToOne) && !$0.isDerived }
      let visible = all.filter { !$0.variable.modifiers.isPrivate }
      if visible.count < all.count, all.contains(where: { $0.isRequired && $0.variable.modifiers.isPrivate }) {
        return ("fileprivate ", all)
      }
      let wide = visible.filter { $0.variable.modifiers.isVisible(with: entity.access) }
      return wide.filter(\.isRequired).count == visible.filter(\.isRequired).count ? (entity.access, wide) : ("", visible)
    }

    private var snapshot: String { "\(access)typealias Snapshot = ManagedObjectSnapshot<\(entity.name)>" }
  }
#endif
