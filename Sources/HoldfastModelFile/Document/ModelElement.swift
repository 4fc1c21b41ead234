/// An XML element of a model file. Unknown elements are kept, too.
///
/// ```swift
/// var age = ModelElement("attribute", ["name": "age", "attributeType": "Integer 16"])
/// age["optional"] = "YES"
/// ```
///
/// Two elements are equal if they have the same name, the same attributes in any order, and equal children in the same order. The line is
/// ignored.
public struct ModelElement: Sendable {
  /// An XML attribute.
  public struct Attribute: Sendable, Hashable {
    /// The name.
    public var name: String
    /// The value.
    public var value: String

    /// Creates an attribute.
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The name: `entity`, `attribute` and so on.
  public var name: String
  /// The attributes in the order of the file, with unique names. They are written in Xcode's order.
  public var attributes: [Attribute]
  /// The child elements, in the order of the file.
  public var children: [ModelElement]
  /// The line of the file, from 1; nil for an element created by a program.
  ///
  /// It is the line on which the element's tag ends.
  public var line: Int?
  /// The text between the tags. Only mapping models have it.
  var text = ""

  /// Creates an element.
  public init(_ name: String, _ attributes: KeyValuePairs<String, String> = [:], children: [ModelElement] = []) {
    self.name = name
    self.attributes = attributes.map { Attribute($0.key, $0.value) }
    self.children = children
  }

  /// The value of an attribute; nil if it is missing. Setting nil removes it.
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

  /// The children with a name, in order.
  public func children(named name: String) -> [ModelElement] { children.filter { $0.name == name } }

  /// The first child with a name, or nil.
  public func child(named name: String) -> ModelElement? { children.first { $0.name == name } }
}

extension ModelElement: Hashable {
  /// Whether names, attributes (in any order) and children are equal.
  public static func == (a: ModelElement, b: ModelElement) -> Bool {
    a.name == b.name && a.attributes.count == b.attributes.count && a.sortedAttributes == b.sortedAttributes && a.children == b.children
  }

  /// Hashes the properties that equality compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(name)
    hasher.combine(sortedAttributes)
    hasher.combine(children)
  }

  private var sortedAttributes: [Attribute] {
    attributes.sorted { ($0.name, $0.value) < ($1.name, $1.value) }
  }
}
