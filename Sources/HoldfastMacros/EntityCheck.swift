#if Macros
  import SwiftSyntax
  import SwiftSyntaxBuilder

  /// Finds mistakes in a class with `@Entity`.
  struct EntityCheck {
    private(set) var problems = Problems()

    /// The class with the attribute; nil with a problem if it is none.
    mutating func classDeclaration(_ declaration: some DeclGroupSyntax, _ node: AttributeSyntax) -> ClassDeclSyntax? {
      if let type = declaration.as(ClassDeclSyntax.self) { return type }
      problems.error(
        "notAClass", at: node, "@Entity is for classes: an entity's objects have an identity. For a group of values, use @Composite.")
      return nil
    }

    mutating func check(_ type: ClassDeclSyntax, _ node: AttributeSyntax) {
      checkName(type, node)
      checkGeneric(type)
      checkSuperclass(type)
      checkFinal(type, node)
      for member in type.memberBlock.members {
        if let variable = member.decl.as(VariableDeclSyntax.self) { check(variable) }
        if let list = member.decl.as(MacroExpansionDeclSyntax.self), list.isEntityList { check(list, in: type) }
        if let condition = member.decl.as(IfConfigDeclSyntax.self) { check(condition) }
      }
      checkNames(type, type.memberBlock.members.compactMap { $0.decl.as(VariableDeclSyntax.self).flatMap(ManagedProperty.init) })
    }

    /// Reports properties with the names of types: where the code counts the slots of the type, or names the class or its superclass, the
    /// compiler finds the property.
    private mutating func checkNames(_ type: ClassDeclSyntax, _ properties: [ManagedProperty]) {
      let classes = [type.name.text] + (type.inheritanceClause?.inheritedTypes.first.map { [$0.type.trimmedDescription] } ?? [])
      let types = Set(properties.filter { $0.kind == .value }.flatMap(\.type.roots) + classes.flatMap { TypeText($0).roots })
      for property in properties {
        let name = property.reference.filter { $0 != "`" }
        guard types.contains(name), let pattern = property.variable.bindings.first?.pattern else { continue }
        problems.error(
          "propertyAsType", at: pattern,
          "\(name) is also the name of a type in the class. Rename the property; "
            + "`@\(property.macro)(name: \"\(property.name)\")` keeps its name in the model.")
      }
    }

    private mutating func check(_ list: MacroExpansionDeclSyntax, in type: ClassDeclSyntax) {
      checkClass(list, type.name.text.filter { $0 != "`" })
      for argument in list.arguments {
        let elements = argument.expression.as(ArrayExprSyntax.self)?.elements
        if let elements, elements.allSatisfy({ $0.expression.as(KeyPathExprSyntax.self)?.hasOnlyNames == true }) { continue }
        problems.error(
          "notKeyPaths", at: argument, "Write each list as an array of key paths, because the macro reads the names in the text.")
      }
    }

    /// Reports a list of key paths of another class. The compiler checks that all are of one class, and not that it is the class with the
    /// list.
    private mutating func checkClass(_ list: MacroExpansionDeclSyntax, _ name: String) {
      let macro = list.macroName.text
      if let named = list.genericArgumentClause?.arguments {
        let other = named.trimmedDescription.filter { $0 != "`" }
        if other == name || other.hasSuffix(".\(name)") || other.hasSuffix("::\(name)") || other == "Self" { return }
        problems.warning(
          "otherClass", at: named,
          "#\(macro)<\(other)> applies to \(name), because it is in that class. Write #\(macro)<\(name)>, or move it to \(other).")
        return
      }
      let keyPaths = list.arguments.compactMap { $0.expression.as(ArrayExprSyntax.self) }.flatMap { Array($0.elements) }
        .compactMap { $0.expression.as(KeyPathExprSyntax.self) }
      for keyPath in keyPaths {
        guard let root = keyPath.root else { continue }
        let other = root.trimmedDescription.filter { $0 != "`" }
        // In `\Farm.Dog.name`, the root is `Farm`, and the class is among the other names.
        if other == name || other.hasSuffix("::\(name)") || other == "Self" || keyPath.names.contains(name) { continue }
        problems.warning(
          "otherClass", at: root, "#\(macro) applies to \(name), because it is in that class. Write \\\(name), or move it to \(other).")
        return
      }
    }

    private mutating func check(_ condition: IfConfigDeclSyntax) {
      if condition.hasManagedProperties {
        problems.error(
          "conditional", at: condition, "The properties of an entity can't depend on #if: a store has the same for all programs.")
      }
    }

    /// The types that the macro adds to each class, and those of `ManagedObject`. In the class, their names are theirs.
    private static let memberTypes: Set<String> = [
      "Slots", "SlotCounts", "Snapshot", "TransformableSlot", "TransientIndex", "TransientLinkIndex",
    ]

    private mutating func checkName(_ type: ClassDeclSyntax, _ node: AttributeSyntax) {
      let arguments = MacroArguments(node.arguments)
      let name = arguments.has(label: "name") ? arguments.string("name") : type.name.text.filter { $0 != "`" }
      if let name, !name.isModelName {
        problems.error("entityName", at: type.name, "\(Problem.nameRule) Write one: `@Entity(name: \"…\")`.")
      }
      guard EntityCheck.memberTypes.contains(type.name.text) else { return }
      problems.error(
        "memberTypeAsClass", at: type.name,
        "\(type.name.text) is a type in each class with @Entity. Rename the class; `@Entity(name:)` keeps the name of the entity.")
    }

    /// The properties of every object, which a class can't declare again.
    private static let objectProperties: Set<String> = [
      "description", "entity", "hasChanges", "hashValue", "isDeleted", "isFault", "isInaccessible", "isInserted", "isUpdated",
      "managedObjectContext", "objectID",
    ]

    private mutating func checkName(_ property: ManagedProperty) {
      guard let pattern = property.variable.bindings.first?.pattern.as(IdentifierPatternSyntax.self) else { return }
      let name = pattern.identifier.text.filter { $0 != "`" }
      if !property.name.isModelName {
        problems.error("propertyName", at: pattern, "\(Problem.nameRule) Write one: `@\(property.macro)(name: \"…\")`.")
      }
      guard EntityCheck.objectProperties.contains(name) else { return }
      problems.error(
        "objectProperty", at: pattern,
        "\(name) is a property of every ManagedObject. Rename it; `@\(property.macro)(name: \"\(property.name)\")` keeps its name in the "
          + "model.")
    }

    private mutating func checkGeneric(_ type: ClassDeclSyntax) {
      guard let parameters = type.genericParameterClause else { return }
      problems.error("generic", at: parameters, "A generic class can't be an entity: a model has one entity for each class.")
    }

    /// Protocols that are often the only ones of a class. The text of others doesn't distinguish them from a superclass.
    private static let protocols: Set<String> = [
      "Codable", "Comparable", "CustomDebugStringConvertible", "CustomStringConvertible", "Decodable", "Encodable", "Equatable", "Hashable",
      "Identifiable", "Sendable",
    ]

    private mutating func checkSuperclass(_ type: ClassDeclSyntax) {
      let inherited = type.inheritanceClause?.inheritedTypes
      if let first = inherited?.first, !EntityCheck.protocols.contains(first.type.trimmedDescription) { return }
      let superclass = IdentifierTypeSyntax(name: .identifier("ManagedObject"))
      var corrected = type
      if let inherited {
        let first = InheritedTypeSyntax(type: superclass, trailingComma: .commaToken(trailingTrivia: .space))
        corrected.inheritanceClause?.inheritedTypes = InheritedTypeListSyntax([first] + Array(inherited))
      } else {
        corrected.name.trailingTrivia = []
        corrected.inheritanceClause = InheritanceClauseSyntax(
          colon: .colonToken(trailingTrivia: .space), inheritedTypes: [InheritedTypeSyntax(type: superclass, trailingTrivia: .space)])
      }
      problems.error(
        "noSuperclass", at: type.name, "\(type.name.text) must inherit from ManagedObject, or from another class with @Entity.",
        .replace(type, by: corrected, "Inherit from ManagedObject"))
    }

    /// A class that isn't final calls its accessors through a table. Only a class with subclasses needs that.
    private mutating func checkFinal(_ type: ClassDeclSyntax, _ node: AttributeSyntax) {
      let isOpenToSubclasses = type.modifiers.contains { [.keyword(.final), .keyword(.open)].contains($0.name.tokenKind) }
      if isOpenToSubclasses || MacroArguments(node.arguments).has(label: "isAbstract") { return }
      var final = type
      final.modifiers = type.modifiers + [DeclModifierSyntax(name: .keyword(.final, trailingTrivia: .space))]
      if type.modifiers.isEmpty {
        final.modifiers = [
          DeclModifierSyntax(name: .keyword(.final, leadingTrivia: type.classKeyword.leadingTrivia, trailingTrivia: .space))
        ]
        final.classKeyword.leadingTrivia = []
      }
      problems.warning(
        "notFinal", at: type.name,
        "\(type.name.text) isn't final. Only a superentity needn't be; write `@Entity(isAbstract: true)`, or false if it has objects itself.",
        .replace(type, by: final, "Make the class final"))
    }

    // MARK: Properties

    private mutating func check(_ variable: VariableDeclSyntax) {
      if let condition = variable.conditionalMacro {
        problems.error(
          "conditionalSettings", at: condition,
          "The settings of a property can't depend on #if: a store has the same for all programs.")
      }
      guard checkIsManaged(variable), checkForm(variable), let property = ManagedProperty(variable), checkToMany(property) else { return }
      checkName(property)
      checkType(property)
      checkRelationship(property)
      checkInitialValue(property)
      if let (name, second) = variable.repeatedMacro {
        problems.error("repeatedMacro", at: second, "The property has @\(name) twice. Write all its arguments in the first one.")
      }
      if variable.attribute(named: "Attribute") != nil, let relationship = variable.attribute(named: "Relationship") {
        problems.error(
          "attributeAndRelationship", at: relationship, "A property is an attribute or a relationship. Remove one of both macros.")
      }
      let name = (variable.attribute(named: "Attribute") ?? variable.attribute(named: "Relationship")).map { MacroArguments($0.arguments) }
      if let name, name.has(label: "name"), name.string("name") == nil {
        problems.error(
          "computedName", at: variable, "The name in the model must be a literal, because the order of the slots depends on it.")
      }
    }

    /// Reports observers, and macros on properties that aren't managed.
    private mutating func checkIsManaged(_ variable: VariableDeclSyntax) -> Bool {
      if ManagedProperty.isManaged(variable) { return true }
      if let observer = variable.observer {
        problems.error(
          "observer", at: observer,
          "A managed property can't have observers: its value also changes without its setter. Use onChange of the context, or willSave().")
      } else if let macro = variable.attribute(named: "Attribute") ?? variable.attribute(named: "Relationship") {
        problems.error("notStored", at: macro, "Only a stored property of objects is managed.")
      }
      return false
    }

    /// Reports `let`, several properties in one declaration, and types that the text doesn't say.
    private mutating func checkForm(_ variable: VariableDeclSyntax) -> Bool {
      guard let binding = variable.bindings.first else { return false }
      if !variable.isVar {
        problems.error(
          "constant", at: variable.bindingSpecifier, "A managed property is a variable: its value is read from a store.",
          .makeVariable(variable))
        return false
      }
      guard variable.bindings.count == 1, let pattern = binding.pattern.as(IdentifierPatternSyntax.self) else {
        problems.error("severalBindings", at: variable, "Declare each managed property on its own.")
        return false
      }
      if binding.typeAnnotation == nil, binding.initializer.flatMap({ InitialValue(expression: $0.value).type }) == nil {
        problems.error(
          "missingType", at: pattern, "The type of '\(pattern.identifier.text)' must be written: the macro can't infer it.",
          .insertType(of: binding))
        return false
      }
      return true
    }

    /// Reports a to-many relationship that is an array or a set, or optional.
    private mutating func checkToMany(_ property: ManagedProperty) -> Bool {
      guard let binding = property.variable.bindings.first, let type = binding.typeAnnotation?.type else { return true }
      var corrected = binding
      corrected.initializer = nil
      func correct(_ text: String, _ message: String) -> Correction {
        corrected.typeAnnotation?.type = TypeSyntax("\(raw: text)").with(\.trailingTrivia, binding.trailingTrivia)
        return .replace(binding, by: corrected, message)
      }
      let isUnwrapped = property.type.text.hasSuffix("!")
      let wrapped = isUnwrapped ? String(property.type.text.dropLast()) : property.type.wrapped
      if TypeText(wrapped).isToMany, isUnwrapped || property.type.isOptional {
        problems.error(
          "optionalToMany", at: type, "A to-many relationship isn't optional: without objects it is empty.",
          correct(wrapped, "Make it not optional"))
        return false
      }
      if property.variable.attribute(named: "Relationship") != nil, let element = property.type.element {
        problems.error(
          "arrayRelationship", at: type,
          "A to-many relationship has the type ToMany<\(element)>, or OrderedToMany<\(element)> if its objects have an order.",
          correct("ToMany<\(element)>", "Make it a to-many relationship"))
        return false
      }
      return true
    }

    private mutating func checkType(_ property: ManagedProperty) {
      guard let binding = property.variable.bindings.first else { return }
      if let name = property.type.names.first(where: EntityCheck.memberTypes.contains) {
        problems.error(
          "memberType", at: binding.typeAnnotation.map { Syntax($0.type) } ?? Syntax(binding),
          "\(name) is a type in each class with @Entity. Write the other type with its module: Module.\(name).")
      }
      if property.type.text.hasSuffix("!"), let type = binding.typeAnnotation?.type {
        problems.error(
          "implicitlyUnwrapped", at: type, "A property that can be nil has an optional type.",
          .replace(
            type, by: TypeSyntax("\(raw: property.type.text.dropLast())?").with(\.trailingTrivia, type.trailingTrivia), "Make it optional"))
      }
      guard property.kind == .value, property.type.isCollection else { return }
      guard let element = property.type.element, let annotation = binding.typeAnnotation else {
        problems.error("collection", at: binding, "A collection isn't an attribute. Add `@Attribute(.codable)`.")
        return
      }
      let message = "A collection isn't an attribute. For objects, use ToMany<\(element)>; for values, add `@Attribute(.codable)`."
      if property.type.isOptional || binding.initializer != nil {
        problems.error("collection", at: annotation.type, message)
        return
      }
      problems.error(
        "collection", at: annotation.type, message,
        .replace(
          annotation.type, by: TypeSyntax("ToMany<\(raw: element)>").with(\.trailingTrivia, annotation.type.trailingTrivia),
          "Make it a to-many relationship"))
    }

    private mutating func checkRelationship(_ property: ManagedProperty) {
      let macro = property.variable.attribute(named: "Relationship")
      if property.type.isToMany, macro == nil, let attribute = property.variable.attribute(named: "Attribute") {
        problems.error(
          "attributeToMany", at: attribute, "\(property.type.text) is a relationship. Its rules and settings are those of `@Relationship`.")
        return
      }
      if property.kind == .toMany, macro == nil {
        var corrected = property.variable
        let leading = corrected.leadingTrivia
        corrected.leadingTrivia = []
        corrected.attributes =
          [.attribute("@Relationship(inverse: \\<#Class#>.<#property#>) ")] + corrected.attributes
        corrected.leadingTrivia = leading
        problems.warning(
          "noInverse", at: property.variable,
          "A to-many relationship has an inverse. Name it here, or write `@Relationship` if the other class does, or if there is none.",
          .replace(property.variable, by: corrected, "Add an inverse"))
      }
      if macro != nil, !property.type.isToMany, !property.type.isOptional, !property.type.text.hasSuffix("!"),
        let type = property.variable.bindings.first?.typeAnnotation?.type
      {
        problems.error(
          "nonoptionalToOne", at: type,
          "A to-one relationship is optional: it is nil until it is set, and after its object was deleted. For one that each saved object "
            + "has, add `.required`.", .makeOptional(type))
      }
    }

    private mutating func checkInitialValue(_ property: ManagedProperty) {
      guard let binding = property.variable.bindings.first, let initializer = binding.initializer else {
        return checkTransient(property)
      }
      var corrected = binding
      corrected.initializer = nil
      corrected.typeAnnotation?.trailingTrivia = []
      if binding.typeAnnotation == nil {
        // The initial value was also the type.
        let isToOne = property.variable.attribute(named: "Relationship") != nil && !property.type.isToMany
        corrected = isToOne ? binding.optional(property.type) : binding.typed(property.type.text)
      }
      let removed = Correction.replace(binding, by: corrected, "Remove the initial value")
      if property.type.isToMany
        || (property.variable.attribute(named: "Relationship") != nil && property.initial?.kind != InitialValue.Kind.none)
      {
        problems.error(
          "relationshipWithValue", at: initializer.value, "A relationship has no initial value. Set it after the insertion.", removed)
      } else if property.initial?.contradicts(property.type.text) == true {
        problems.error(
          "wrongDefault", at: initializer.value, "The initial value isn't of the property's type \(property.type.text).", removed)
      } else if property.isDerived {
        problems.error("derivedWithValue", at: initializer.value, "A derived attribute has no initial value: saves compute it.", removed)
      } else if property.kind == .transient, !property.type.isOptional, property.initial?.kind == .computed {
        problems.error(
          "computedTransient", at: initializer.value,
          "A transient attribute would compute this each time it is read without a value. Make it optional, and set it when it is first used.",
          .replace(binding, by: binding.optional(property.type), "Make it optional"))
      }
    }

    /// Values that aren't in the row, or are made by a transformer, have no zero.
    private mutating func checkTransient(_ property: ManagedProperty) {
      guard property.kind == .transient || property.isTransformed, !property.type.isOptional,
        let type = property.variable.bindings.first?.typeAnnotation?.type
      else { return }
      problems.error(
        "valueWithoutZero", at: type,
        "A \(property.kind == .transient ? "transient" : "transformable") attribute can be absent. Make it optional, or give it an initial "
          + "value, which it then reads as.", .makeOptional(type))
    }
  }

  extension Correction {
    /// Inserts a placeholder for the type of a property.
    static func insertType(of binding: PatternBindingSyntax) -> Correction {
      var corrected = binding
      corrected.pattern = binding.pattern.trimmed
      corrected.typeAnnotation = TypeAnnotationSyntax(
        colon: .colonToken(trailingTrivia: .space), type: IdentifierTypeSyntax(name: .identifier("<#Type#>")),
        trailingTrivia: binding.initializer == nil ? [] : .space)
      return .replace(binding, by: corrected, "Insert a type")
    }

    /// Makes the type of a property optional.
    static func makeOptional(_ type: TypeSyntax) -> Correction {
      let optional = TypeSyntax("\(raw: TypeText(type.trimmedDescription).optional)")
      return .replace(type, by: optional.with(\.trailingTrivia, type.trailingTrivia), "Make it optional")
    }
  }

  extension MacroExpansionDeclSyntax {
    /// Whether it is `#Unique` or `#Index`.
    fileprivate var isEntityList: Bool { ["Unique", "Index"].contains(macroName.text) }
  }

  extension IfConfigDeclSyntax {
    /// Whether a clause has properties that would be managed, or `#Unique` or `#Index`.
    var hasManagedProperties: Bool {
      clauses.compactMap { $0.elements?.as(MemberBlockItemListSyntax.self) }.flatMap { Array($0) }.contains { member in
        if let condition = member.decl.as(IfConfigDeclSyntax.self) { return condition.hasManagedProperties }
        if let list = member.decl.as(MacroExpansionDeclSyntax.self) { return list.isEntityList }
        return member.decl.as(VariableDeclSyntax.self).map(ManagedProperty.isManaged) ?? false
      }
    }
  }

  extension KeyPathExprSyntax {
    /// The names behind the root.
    var names: [String] {
      components.compactMap { component -> String? in
        if case .property(let property) = component.component { property.declName.baseName.text.filter { $0 != "`" } } else { nil }
      }
    }

    /// Whether it has no subscripts.
    fileprivate var hasOnlyNames: Bool {
      components.allSatisfy { if case .subscript = $0.component { false } else { true } }
    }
  }

  extension PatternBindingSyntax {
    /// The property with an optional type and without an initial value.
    fileprivate func optional(_ type: TypeText) -> PatternBindingSyntax { typed(TypeText(type.wrapped).optional) }

    /// The property with a type and without an initial value.
    fileprivate func typed(_ type: String) -> PatternBindingSyntax {
      var typed = self
      typed.pattern.trailingTrivia = []
      typed.initializer = nil
      typed.typeAnnotation = TypeAnnotationSyntax(colon: .colonToken(trailingTrivia: .space), type: TypeSyntax("\(raw: type)"))
      return typed
    }
  }
#endif
