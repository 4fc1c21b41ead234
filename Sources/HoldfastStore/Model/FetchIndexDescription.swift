/// Declares an index that speeds up fetches.
///
/// An index doesn't change the results of fetches. It isn't part of the version hash, so you can add one without a migration.
///
/// ```swift
/// let newest = FetchIndexDescription("newest", elements: [FetchIndexElement("date", isAscending: false), FetchIndexElement("name")])
/// ```
public struct FetchIndexDescription: Sendable, Hashable {
  /// The name, unique in the entity.
  public var name: String
  /// The elements, most significant first.
  public var elements: [FetchIndexElement]
  /// Whether the index is ignored: stores don't create it. Defaults to false.
  ///
  /// Model files may contain indexes that stores can't create: on a to-many relationship, on `self`, or with the name of another index.
  /// Reading a file sets this property for them. The model is then usable, and writing it again loses nothing. The elements and name of an
  /// ignored index aren't checked.
  public var isIgnored: Bool

  /// Declares an index.
  public init(_ name: String, elements: [FetchIndexElement], isIgnored: Bool = false) {
    self.name = name
    self.elements = elements
    self.isIgnored = isIgnored
  }

  /// Declares an index with ascending elements, by names of attributes and to-one relationships.
  public init(_ name: String, _ properties: [String]) {
    self.init(name, elements: properties.map { FetchIndexElement($0) })
  }

  /// The names of attributes and to-one relationships, most significant first.
  public var properties: [String] { elements.map(\.property) }
}

/// An element of a ``FetchIndexDescription``.
public struct FetchIndexElement: Sendable, Hashable {
  /// The type of an index.
  @nonexhaustive public enum Kind: String, Sendable, Hashable, Codable {
    /// For comparisons and order.
    case binary
    /// For ranges in several dimensions. Stores keep the declaration, but don't create an index of this type.
    case rTree
  }

  /// The name of an attribute or to-one relationship, own or inherited.
  ///
  /// `place.latitude` names an element of a composite attribute. An ignored index may name anything.
  public var property: String
  /// Whether the order is ascending.
  public var isAscending: Bool
  /// The type of the index.
  public var kind: Kind

  /// Declares an element.
  public init(_ property: String, isAscending: Bool = true, kind: Kind = .binary) {
    self.property = property
    self.isAscending = isAscending
    self.kind = kind
  }
}

extension FetchIndexDescription: Codable {
  private enum CodingKeys: String, CodingKey { case name, properties, descending, rTree, descendingPlaces, rTreePlaces, isIgnored }

  /// Decodes a declaration. Missing keys have their default values.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    let descending: [String] = try values.decode(.descending, default: []), rTree: [String] = try values.decode(.rTree, default: [])
    let descendingPlaces: [Int] = try values.decode(.descendingPlaces, default: [])
    let rTreePlaces: [Int] = try values.decode(.rTreePlaces, default: [])
    let isDescending = (properties: Set(descending), places: Set(descendingPlaces))
    let isRTree = (properties: Set(rTree), places: Set(rTreePlaces))
    self.init(
      try values.decode(String.self, forKey: .name),
      elements: try values.decode([String].self, forKey: .properties).enumerated().map { place, property in
        FetchIndexElement(
          property, isAscending: !isDescending.properties.contains(property) && !isDescending.places.contains(place),
          kind: isRTree.properties.contains(property) || isRTree.places.contains(place) ? .rTree : .binary)
      }, isIgnored: try values.decode(.isIgnored, default: false))
  }

  /// Encodes the declaration.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    let descending = elements.indices.filter { !elements[$0].isAscending }, rTree = elements.indices.filter { elements[$0].kind == .rTree }
    try values.encode(name, forKey: .name)
    try values.encode(properties, forKey: .properties)
    if Set(properties).count == elements.count {
      try values.encode(descending.map { elements[$0].property }, ifNot: [], forKey: .descending)
      try values.encode(rTree.map { elements[$0].property }, ifNot: [], forKey: .rTree)
    } else {
      // The name of a property that occurs several times doesn't identify an element.
      try values.encode(descending, ifNot: [], forKey: .descendingPlaces)
      try values.encode(rTree, ifNot: [], forKey: .rTreePlaces)
    }
    try values.encode(isIgnored, ifNot: false, forKey: .isIgnored)
  }
}
