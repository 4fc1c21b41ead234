/// Which entities and properties of two models belong together, instead of their names and renaming identifiers.
///
/// What the rules don't mention is new in the destination, and removed from the source. Rules may name entities and properties that don't exist.
package struct MappingRules: Sendable, Hashable, Codable {
  /// The rules of one entity of the destination.
  package struct Entity: Sendable, Hashable, Codable {
    /// The name of the entity in the source.
    package var source: String
    /// The names of the source's attributes, by the names in the destination.
    package var attributes: [String: String]
    /// The names of the source's relationships, by the names in the destination.
    package var relationships: [String: String]

    package init(source: String, attributes: [String: String] = [:], relationships: [String: String] = [:]) {
      (self.source, self.attributes, self.relationships) = (source, attributes, relationships)
    }
  }

  /// The rules by the name of the entity in the destination.
  package var entities: [String: Entity]

  package init(_ entities: [String: Entity] = [:]) { self.entities = entities }
}
