import Holdfast

/// A model with a to-many relationship without an inverse: albums, some of them shared, with photos.
enum Albums {
  static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Album", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("photos", to: "Photo", inverse: nil)]),
      EntityDescription("SharedAlbum", superentity: "Album"),
      EntityDescription("Photo", attributes: [AttributeDescription("name", .string, isOptional: true)]),
    ])
  }
}
