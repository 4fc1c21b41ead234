import Foundation
import Testing

@testable import Holdfast

/// Refreshing and validating objects whose values are stored in files.
@Suite struct ExternalObjectTests {
  @Test(arguments: FileStore.all)
  func aRefreshThatMergesKeepsTheValueInItsFile(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    let context = try gallery.open()
    let photo = try #require(try Gallery.photos(context).first)
    #expect(photo.revision == 0)
    // Merging reads the row that another context changed, and keeps this context's changes.
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Photo.self])
    try #require(try Gallery.photos(other).first).revision = 7
    try other.save()
    photo.title = "Mine"
    try context.refresh(photo, mergeChanges: true)
    #expect(photo.revision == 7 && photo.title == "Mine" && photo.image == Gallery.bytes(1, 4000))
    try context.save()
    #expect(photo.image == Gallery.bytes(1, 4000) && gallery.files.count == 1)
    try context.persistentStoreCoordinator.close()
    let again = try gallery.open()
    #expect(try Gallery.photos(again).map(\.image) == [Gallery.bytes(1, 4000)])
    try again.persistentStoreCoordinator.close()
  }

  /// Validation checks each property of a changed object, except unchanged external values, which aren't read.
  @Test(arguments: FileStore.all)
  func validationOfAClassReadsNoValueFromAFile(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    let context = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: Gallery.model, store: kind.description(at: gallery.path, Gallery.small)),
      classes: [JudgedPhoto.self])
    let photo = try #require(try context.fetch(FetchRequest<JudgedPhoto>()).first)
    for name in gallery.files { try FileManager.default.removeItem(atPath: gallery.data + "/" + name) }
    photo.title = "Renamed"
    try context.save()
    #expect(photo.asked == ["number", "revision", "title"])
    // A new value is validated before it is written.
    photo.asked = []
    photo.image = Gallery.bytes(2, 4001)
    try context.save()
    #expect(photo.asked == ["image", "number", "revision", "title"])
    photo.image = Gallery.bytes(2, 4002)
    photo.refusesImages = true
    #expect(throws: PersistenceError.self) { try context.save() }
    context.rollback()
    #expect(photo.image == Gallery.bytes(2, 4001))
    try context.persistentStoreCoordinator.close()
  }
}

/// A photo whose class validates values.
private final class JudgedPhoto: ManagedObject {
  override class var entityName: String { "Photo" }
  var asked: [String] = []
  var refusesImages = false
  var image: Data? {
    get { self[Photo.Slot.image] }
    set { self[Photo.Slot.image] = newValue }
  }
  var title: String? {
    get { self[Photo.Slot.title] }
    set { self[Photo.Slot.title] = newValue }
  }
  override func validate(_ value: PropertyValue, forKey key: String) throws {
    asked.append(key)
    if key == "image", refusesImages { throw PersistenceError.invalid("No images.", property: key) }
  }
  override class var properties: [PropertyBinding] {
    [
      .attribute("image", \JudgedPhoto.image, slot: Photo.Slot.image),
      .attribute("title", \JudgedPhoto.title, slot: Photo.Slot.title),
    ]
  }
}
