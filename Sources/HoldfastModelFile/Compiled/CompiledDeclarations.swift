import HoldfastStore

/// The declarations of a compiled model, before they are checked and frozen.
struct CompiledDeclarations {
  var entities: [EntityDescription] = []
  var versionIdentifiers: [String] = []
  var configurations: [ConfigurationDescription] = []
  var fetchRequestTemplates: [FetchRequestDescription] = []
  var notes: [CompiledModelNote] = []
}

/// A property of an entity.
enum CompiledProperty: Equatable {
  case attribute(AttributeDescription)
  case relationship(RelationshipDescription)
  case fetched(FetchedPropertyDescription)
}
