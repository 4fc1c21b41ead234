import Foundation
import HoldfastFiles
import HoldfastMemoryStore
import HoldfastStoreConformance
import TestSupport

@testable import Holdfast

/// A model with photos whose images may be stored in external files.
enum Gallery {
  static let model = Harbour.made([
    EntityDescription(
      "Photo",
      attributes: [
        AttributeDescription("number", .integer64),
        AttributeDescription("image", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
        AttributeDescription("revision", .integer64, default: .int64(0)), AttributeDescription("title", .string, isOptional: true),
      ])
  ])

  /// Values of more than 1,000 bytes are stored in files.
  static let small = ExternalDataOptions(threshold: 1000)

  static func context(_ store: StoreDescription) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [Photo.self])
  }

  /// The image of a photo at a revision: nil, small or large.
  static func image(_ number: Int64, _ revision: Int64, largest: Int = 5000) -> Data? {
    let size = [nil, 10, largest, largest - 1, 1000, 1001][Int((number &* 7 &+ revision) % 6)]
    return size.map { bytes(number &* 1000 &+ revision, $0) }
  }

  static func bytes(_ seed: Int64, _ count: Int) -> Data {
    Data(TestBytes.pattern(seed, count))
  }

  static func photos(_ context: ManagedObjectContext) throws -> [Photo] {
    try context.fetch(FetchRequest<Photo>(sortedBy: [.ascending(\.number)]))
  }

  @discardableResult
  static func insert(_ number: Int64, _ image: Data?, _ context: ManagedObjectContext) -> Photo {
    let photo = context.insert(Photo.self)
    photo.number = number
    photo.image = image
    return photo
  }
}

final class Photo: ManagedObject {
  enum Slot { static let image: SlotIndex = 0, number: SlotIndex = 1, revision: SlotIndex = 2, title: SlotIndex = 3 }
  override class var entityName: String { "Photo" }
  var image: Data? {
    get { self[Slot.image] }
    set { self[Slot.image] = newValue }
  }
  var number: Int64 {
    get { self[Slot.number] }
    set { self[Slot.number] = newValue }
  }
  var revision: Int64 {
    get { self[Slot.revision] }
    set { self[Slot.revision] = newValue }
  }
  var title: String? {
    get { self[Slot.title] }
    set { self[Slot.title] = newValue }
  }
  override class var properties: [PropertyBinding] {
    [
      .attribute("image", \Photo.image, slot: Slot.image), .attribute("number", \Photo.number, slot: Slot.number),
      .attribute("revision", \Photo.revision, slot: Slot.revision), .attribute("title", \Photo.title, slot: Slot.title),
    ]
  }
}

extension FileStore {
  /// The name of the support folder of `gallery.store`.
  var supportFolderName: String { if case .sqlite = self { ".gallery_SUPPORT" } else { ".gallery.store_SUPPORT" } }
}

/// A store in a separate folder, and the files beside it.
struct GalleryFolder {
  let kind: FileStore
  let folder: TemporaryFolder
  let path: String

  init(_ kind: FileStore) throws {
    self.kind = kind
    folder = TemporaryFolder()
    path = folder.file("gallery.store")
  }

  func open(_ options: ExternalDataOptions = Gallery.small, isReadOnly: Bool = false) throws -> ManagedObjectContext {
    try Gallery.context(kind.description(at: path, options, isReadOnly: isReadOnly))
  }

  var support: String { folder.path + "/" + kind.supportFolderName }
  var data: String { support + "/_EXTERNAL_DATA" }

  /// The names of the files with values.
  var files: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: data)) ?? []).sorted() }

  /// The notes of unfinished saves.
  var notes: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: support)) ?? []).filter { $0 != "_EXTERNAL_DATA" } }

  /// Fills a new store with photos of these images and closes it. Returns the names of their files, in the order of the photos.
  func make(_ images: [Data?]) throws -> [String?] {
    let context = try open()
    for (number, image) in images.enumerated() { Gallery.insert(Int64(number), image, context) }
    try context.save()
    let names = try GalleryFolder.names(context)
    try context.persistentStoreCoordinator.close()
    return names
  }

  /// The file names in the rows of the store, read by a new context.
  static func names(_ context: ManagedObjectContext) throws -> [String?] {
    let fresh = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Photo.self])
    context.persistentStoreCoordinator.rowCache.removeAll()
    return try Gallery.photos(fresh).map { $0.readRow.externalID(Photo.Slot.image)?.uuidString }
  }
}
