/// One XML element of a model file with all that it holds, whether this module knows its meaning or not.
///
/// ```swift
/// var age = ModelElement("attribute", ["name": "age", "attributeType": "Integer 16"])
/// age["optional"] = "YES"
/// ```
///
/// Two elements are equal when they have the same name, the same attributes in whatever order, and equal children in the same order. The
/// line does not count.
public struct ModelElement: Sendable {
  /// A name with its value.
  public struct Attribute: Sendable, Hashable {
    /// The name.
    public var name: String
    /// The value.
    public var value: String

    /// Makes an attribute.
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The name: `entity`, `attribute` and so on.
  public var name: String
  /// The attributes in the order of the file, each name once. Written in Xcode's order.
  public var attributes: [Attribute]
  /// The elements inside, in the order of the file.
  public var children: [ModelElement]
  /// The line of the file at which the element's tag ends, from 1; nil for one that was made by a program.
  public var line: Int?

  /// Makes an element.
  public init(_ name: String, _ attributes: KeyValuePairs<String, String> = [:], children: [ModelElement] = []) {
    self.name = name
    self.attributes = attributes.map { Attribute($0.key, $0.value) }
    self.children = children
  }

  /// The value of an attribute; nil when it is absent. Setting nil removes it.
  public subscript(_ name: String) -> String? {
    get { attributes.first { $0.name == name }?.value }
    set {
      guard let newValue else { return attributes.removeAll { $0.name == name } }
      if let place = attributes.firstIndex(where: { $0.name == name }) {
        attributes[place].value = newValue
      } else {
        attributes.append(Attribute(name, newValue))
      }
    }
  }

  /// The children of that name, in order.
  public func children(named name: String) -> [ModelElement] { children.filter { $0.name == name } }

  /// The first child of that name; nil for none.
  public func child(named name: String) -> ModelElement? { children.first { $0.name == name } }
}

extension ModelElement: Hashable {
  /// Whether names, attributes (in whatever order) and children are equal.
  public static func == (a: ModelElement, b: ModelElement) -> Bool {
    a.name == b.name && a.attributes.count == b.attributes.count && a.sortedAttributes == b.sortedAttributes && a.children == b.children
  }

  /// Hashes what equality compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(name)
    hasher.combine(sortedAttributes)
    hasher.combine(children)
  }

  private var sortedAttributes: [Attribute] {
    attributes.sorted { ($0.name, $0.value) < ($1.name, $1.value) }
  }
}
