import Foundation
import Testing

@testable import Holdfast

/// Objects whose values lie in files: what is asked of them beside the value.
@Suite struct ExternalObjectTests {
  @Test(arguments: FileStore.all)
  func aRefreshThatMergesKeepsTheValueInItsFile(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    let context = try gallery.open()
    let photo = try #require(try Gallery.photos(context).first)
    #expect(photo.revision == 0)
    // A row that was changed elsewhere comes, with mine on top of it.
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

  /// Rules of a class see each property of a changed object; a value that was right when it was saved is not read for them.
  @Test(arguments: FileStore.all)
  func rulesOfAClassReadNoValueFromAFile(kind: FileStore) throws {
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
    // A new value is asked about before it is written.
    photo.asked = []
    photo.image = Gallery.bytes(2, 4001)
    try context.save()
    #expect(photo.asked == ["image", "number", "revision", "title"])
    photo.image = Gallery.bytes(2, 4002)
    photo.refusesImages = true
    #expect(throws: ContextError.self) { try context.save() }
    context.rollback()
    #expect(photo.image == Gallery.bytes(2, 4001))
    try context.persistentStoreCoordinator.close()
  }
}

/// A photo whose class has rules.
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
    if key == "image", refusesImages { throw ContextError.invalid("No images.", property: key) }
  }
  override class var properties: [PropertyBinding] {
    [
      .attribute("image", \JudgedPhoto.image, slot: Photo.Slot.image),
      .attribute("title", \JudgedPhoto.title, slot: Photo.Slot.title),
    ]
  }
}
