/// The attributes of an entity as stores keep them: without transient ones, and with composites expanded.
struct StoredAttributes {
  /// One value in a row.
  struct Leaf {
    /// The path from the entity.
    let name: String
    let declaration: AttributeDescription
    let isOptional: Bool
    /// Nil within an optional composite attribute, because a new object begins without a value of that attribute.
    let defaultValue: StoreValue?
  }

  /// A composite attribute, before its slots are known.
  struct Group {
    let name: String
    let declaration: AttributeDescription
    let isOptional: Bool
  }

  private(set) var leaves: [Leaf] = []
  private(set) var groups: [Group] = []

  /// Expands the attributes that an entity declares itself. Requires valid composites.
  init(_ attributes: [AttributeDescription], _ composites: [String: CompositeDescription]) {
    for attribute in attributes where !attribute.isTransient { add(attribute, prefix: "", isOptional: false, composites) }
    groups.sort { ModelOrder.bytewise($0.name, $1.name) }
  }

  private mutating func add(
    _ attribute: AttributeDescription, prefix: String, isOptional: Bool, _ composites: [String: CompositeDescription]
  ) {
    let name = prefix + attribute.name
    guard attribute.type == .composite else {
      leaves.append(
        Leaf(
          name: name, declaration: attribute, isOptional: isOptional || attribute.isOptional,
          defaultValue: isOptional ? nil : attribute.defaultValue))
      return
    }
    groups.append(Group(name: name, declaration: attribute, isOptional: isOptional || attribute.isOptional))
    for element in attribute.compositeName.flatMap({ composites[$0]?.elements }) ?? [] {
      add(element, prefix: name + ".", isOptional: isOptional || attribute.isOptional, composites)
    }
  }
}
