import Foundation
import HoldfastFiles
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// Values in external files, through the stack, on every store with a file.
@Suite struct ExternalDataTests {
  /// The files and permissions after a save with images of several sizes.
  @Test(arguments: FileStore.all)
  func valuesOverTheThresholdAreStoredInFilesAndReturned(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    let images: [Data?] = [nil, Data(), Gallery.bytes(1, 999), Gallery.bytes(2, 1000), Gallery.bytes(3, 1001), Gallery.bytes(4, 2_000_000)]
    let names = try gallery.make(images)
    #expect(names.map { $0 != nil } == [false, false, false, false, true, true])
    #expect(gallery.files == names.compactMap { $0 }.sorted() && gallery.notes.isEmpty)
    let context = try gallery.open()
    #expect(try Gallery.photos(context).map(\.image) == images)
    try context.persistentStoreCoordinator.close()
    #expect(gallery.folder.openDescriptors == 0)
    for path in [gallery.support, gallery.data] { #expect(try permissions(path) == 0o700) }
    for name in gallery.files { #expect(try permissions(gallery.data + "/" + name) == 0o600) }
  }

  @Test(arguments: FileStore.all)
  func aReadOnlyStoreReadsFilesAndWritesNothing(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 3000)])
    let before = try gallery.folder.snapshot()
    let context = try gallery.open(isReadOnly: true)
    #expect(try Gallery.photos(context).map(\.image) == [Gallery.bytes(1, 3000)])
    try context.persistentStoreCoordinator.close()
    #expect(try Set(gallery.folder.snapshot().keys).isSubset(of: Set(before.keys).union(["gallery.store-wal", "gallery.store-shm"])))
  }

  @Test(arguments: FileStore.all)
  func aStoreWhoseModelAllowsNoFilesMakesNone(kind: FileStore) throws {
    let folder = TemporaryFolder()
    let path = folder.file("harbour.store")
    try Harbour.makeFile(kind.description(at: path, Gallery.small))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).allSatisfy { !$0.contains("_SUPPORT") })
  }

  @Test(arguments: FileStore.all)
  func aValueMovesBetweenRowAndFileAndItsOldFileIsRemoved(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    let context = try gallery.open()
    let photo = Gallery.insert(1, Gallery.bytes(1, 4000), context)
    try context.save()
    var last = gallery.files
    #expect(last.count == 1)
    for (size, count) in [(10, 0), (5000, 1), (6000, 1), (nil, 0), (1001, 1), (1000, 0), (1002, 1)] {
      photo.image = size.map { Gallery.bytes(2, $0) }
      try context.save()
      #expect(photo.image == size.map { Gallery.bytes(2, $0) })
      #expect(gallery.files.count == count && (count == 0 || gallery.files != last))
      last = gallery.files
    }
    // Changing another attribute keeps the file.
    photo.title = "Renamed"
    try context.save()
    #expect(gallery.files == last)
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Photo.self])
    let same = try #require(try Gallery.photos(other).first)
    same.title = "Renamed again"
    try other.save()
    #expect(gallery.files == last && same.image == Gallery.bytes(2, 1002))
    other.delete(same)
    try other.save()
    #expect(gallery.files.isEmpty && gallery.notes.isEmpty)
    try context.persistentStoreCoordinator.close()
  }

  /// The bug: values were written to the folder at the former path. The store, which was saved in the moved folder, lacked them.
  @Test(arguments: FileStore.wholeFile)
  func filesFollowAStoreWhoseFolderIsMoved(kind: FileStore) throws {
    let folder = TemporaryFolder(), former = folder.file("former"), moved = folder.file("moved")
    func open(in folder: String) throws -> ManagedObjectContext {
      try Gallery.context(kind.description(at: folder + "/gallery.store", Gallery.small))
    }
    TestFile.makeFolder(former)
    let context = try open(in: former)
    TestFile.move(former, to: moved)
    TestFile.makeFolder(former)
    Gallery.insert(1, Gallery.bytes(1, 4000), context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(TemporaryFolder.names(in: former).isEmpty)
    let other = try open(in: moved)
    #expect(try Gallery.photos(other).map(\.image) == [Gallery.bytes(1, 4000)])
    try other.persistentStoreCoordinator.close()
  }

  enum Replacement: CaseIterable { case moved, removed, restored }

  /// The bug: values were written to a folder that another program had moved away, so the saved rows named files that didn't exist. If the
  /// folder was removed and restored, no value could be read or written until the store was opened again.
  @Test(arguments: FileStore.all, Replacement.allCases)
  func valuesAreWrittenToTheFolderThatIsInPlace(kind: FileStore, replacement: Replacement) throws {
    let gallery = try GalleryFolder(kind), context = try gallery.open(), backup = gallery.folder.file("backup")
    Gallery.insert(1, Gallery.bytes(1, 4000), context)
    try context.save()
    if replacement == .moved {
      TestFile.move(gallery.support, to: backup)
    } else {
      try FileManager.default.copyItem(atPath: gallery.support, toPath: backup)
      try FileManager.default.removeItem(atPath: gallery.support)
    }
    if replacement == .restored {
      TestFile.move(backup, to: gallery.support)
      let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Photo.self])
      #expect(try Gallery.photos(other).first?.image == Gallery.bytes(1, 4000))
    }
    Gallery.insert(2, Gallery.bytes(2, 5000), context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(gallery.files.count == (replacement == .restored ? 2 : 1) && gallery.notes.isEmpty)
    let again = try gallery.open(), photos = try Gallery.photos(again)
    #expect(photos.count == 2 && photos[1].image == Gallery.bytes(2, 5000))
    if replacement == .restored { #expect(photos[0].image == Gallery.bytes(1, 4000)) }
    try again.persistentStoreCoordinator.close()
    #expect(gallery.folder.openDescriptors == 0)
  }

  @Test(arguments: FileStore.all)
  func unsavedValuesLeaveNoFile(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000), Gallery.bytes(2, 10)])
    let before = gallery.files
    let store = FaultBox()
    let context = try Gallery.context(store.wrapping(kind.description(at: gallery.path, Gallery.small)))
    let photos = try Gallery.photos(context)
    photos[0].image = Gallery.bytes(3, 7000)
    Gallery.insert(5, Gallery.bytes(5, 7000), context)
    context.rollback()
    #expect(gallery.files == before && photos[0].image == Gallery.bytes(1, 4000))

    // A save that fails while committing, and a save with a conflict.
    photos[0].image = Gallery.bytes(3, 7000)
    photos[1].image = Gallery.bytes(4, 8000)
    store.failNextCommit()
    #expect(throws: StoreError.self) { try context.save() }
    #expect(gallery.files == before && gallery.notes.isEmpty && photos[0].image == Gallery.bytes(3, 7000))
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Photo.self])
    try #require(try Gallery.photos(other).last).title = "Mine"
    try other.save()
    #expect(throws: PersistenceError.self) { try context.save() }
    #expect(gallery.files == before && gallery.notes.isEmpty)
    context.rollback()
    #expect(try Gallery.photos(context).map(\.image) == [Gallery.bytes(1, 4000), Gallery.bytes(2, 10)])
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.all)
  func filesAreReadLazily(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000), Gallery.bytes(2, 4000), Gallery.bytes(3, 10)])
    let box = RecordingBox()
    let context = try Gallery.context(box.wrapping(kind.description(at: gallery.path, Gallery.small)))
    func reads() throws -> Int { try #require(box.store).requests.count { if case .optional = $0 { true } else { false } } }
    let photos = try Gallery.photos(context)
    for photo in photos { photo.title = "\(photo.number)" }
    try context.save()
    #expect(try context.count(for: FetchRequest<Photo> { $0.image != nil }) == 3)
    #expect(try reads() == 0)
    #expect(photos[2].image == Gallery.bytes(3, 10))
    #expect(try reads() == 0)
    #expect(photos[1].image == Gallery.bytes(2, 4000))
    #expect(try photos[0].value(forKey: "image") == .data(Gallery.bytes(1, 4000)))
    #expect(try photos[0].committedValues(forKeys: ["image"]) == ["image": .data(Gallery.bytes(1, 4000))])
    #expect(try reads() == 3)
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.all)
  func aStaleObjectReportsAMissingValueUntilItIsRefreshed(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    let first = try gallery.open()
    let second = try ManagedObjectContext(coordinator: first.persistentStoreCoordinator, classes: [Photo.self])
    let stale = try #require(try Gallery.photos(first).first)
    let fresh = try #require(try Gallery.photos(second).first)
    #expect(stale.title == nil && stale.image == Gallery.bytes(1, 4000))
    fresh.image = Gallery.bytes(2, 4000)
    try second.save()
    #expect(stale.image == nil)
    #expect((first.faultError as? StoreError)?.code == .missingExternalData)
    #expect(throws: StoreError.self) { try stale.value(forKey: "image") }
    try first.refresh(stale, mergeChanges: false)
    #expect(stale.image == Gallery.bytes(2, 4000))
    try first.persistentStoreCoordinator.close()
  }

  /// The bug: a whole-file store kept the former row until its next save, and a read-only one for good.
  @Test(.ownThreads, arguments: FileStore.all, [false, true])
  func aValueThatAnotherProcessReplacedIsReadAfterARefresh(kind: FileStore, isReadOnly: Bool) async throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    let context = try gallery.open(isReadOnly: isReadOnly), photo = try #require(try Gallery.photos(context).first)
    #expect(photo.title == nil)
    await #expect(processExitsWith: .success) { [kind = kind as FileStore, path = gallery.path as String] in
      let other = try Gallery.context(kind.description(at: path, Gallery.small))
      try Gallery.photos(other)[0].image = Gallery.bytes(2, 5000)
      try other.save()
      try other.persistentStoreCoordinator.close()
    }
    let error = #expect(throws: StoreError.self) { try photo.value(forKey: "image") }
    #expect(error?.code == .missingExternalData)
    try context.refresh(photo, mergeChanges: false)
    #expect(try photo.value(forKey: "image") == .data(Gallery.bytes(2, 5000)))
    try context.persistentStoreCoordinator.close()
  }

  /// Another context deletes the photo. Its file remains, because a third one reads a former generation.
  @Test(arguments: FileStore.all)
  func anObjectIsNotInsertedAgainWithoutAValueThatCannotBeReadNow(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind), box = FaultBox(), image = Gallery.bytes(1, 4000)
    _ = try gallery.make([image])
    let ours = try Gallery.context(box.wrapping(kind.description(at: gallery.path, Gallery.small)))
    let theirs = try ManagedObjectContext(coordinator: ours.persistentStoreCoordinator, classes: [Photo.self])
    let reader = try ManagedObjectContext(coordinator: ours.persistentStoreCoordinator, classes: [Photo.self])
    try reader.setQueryGeneration(from: .current)
    ours.mergePolicy = .mergeByPropertyObjectTrump
    let photo = try #require(try Gallery.photos(ours).first)
    photo.title = "ours"
    theirs.delete(try #require(try Gallery.photos(theirs).first))
    try theirs.save()
    box.store?.fail(.optional, with: StoreError(.inputOutput, operation: "read", reason: "A test said so."))
    let error = #expect(throws: StoreError.self) { try ours.save() }
    #expect(error?.code == .inputOutput && photo.hasChanges && photo.title == "ours")
    ours.acknowledgeFaultErrors()
    try ours.save()
    #expect(photo.image == image && photo.title == "ours")
    try reader.setQueryGeneration(from: nil)
    #expect(try Gallery.photos(reader).map(\.image) == [image])
    try ours.persistentStoreCoordinator.close()
  }

  /// The bug: the error reported that the file was gone.
  @Test(arguments: FileStore.all, [StoreError.Code.damaged, .tooLarge])
  func anObjectIsNotInsertedAgainWithAnUnreadableFile(kind: FileStore, code: StoreError.Code) throws {
    let gallery = try GalleryFolder(kind), box = FaultBox()
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    let ours = try Gallery.context(box.wrapping(kind.description(at: gallery.path, Gallery.small)))
    let theirs = try ManagedObjectContext(coordinator: ours.persistentStoreCoordinator, classes: [Photo.self])
    ours.mergePolicy = .mergeByPropertyObjectTrump
    let photo = try #require(try Gallery.photos(ours).first)
    photo.title = "ours"
    theirs.delete(try #require(try Gallery.photos(theirs).first))
    try theirs.save()
    box.store?.fail(.optional, with: StoreError(code, operation: "read", reason: "A test said so."))
    let error = #expect(throws: PersistenceError.self) { try ours.save() }
    #expect(error?.code == .conflict && error?.property == "image" && (error?.cause as? StoreError)?.code == code)
    #expect(error?.description.contains("missing or unreadable") == true && photo.title == "ours" && photo.hasChanges)
    try ours.persistentStoreCoordinator.close()
  }

  @Test func queriesCanOnlyCompareExternalValuesWithNilOnEveryStore() throws {
    var stores: [StoreDescription] = [.memory(), MinimalStore.description()]
    let galleries = try FileStore.all.map { try GalleryFolder($0) }
    stores += galleries.map { $0.kind.description(at: $0.path, Gallery.small) }
    for store in stores {
      let context = try Gallery.context(store)
      for (number, size) in [nil, 10, 4000].enumerated() { Gallery.insert(Int64(number), size.map { Gallery.bytes(1, $0) }, context) }
      try context.save()
      let image = PropertyPath("image")
      func count(_ predicate: QueryExpression) throws -> Int {
        var request = FetchRequest<Photo>()
        request.expression = predicate
        return try context.count(for: request)
      }
      #expect(try count(.comparison(.property(image), .equalTo, .constant(.null), [])) == 1, "\(store.type)")
      #expect(try count(.comparison(.property(image), .notEqualTo, .constant(.null), [])) == 2, "\(store.type)")
      for value in [Gallery.bytes(1, 10), Gallery.bytes(1, 4000)] {
        for op in [ComparisonOperator.equalTo, .notEqualTo, .lessThan] {
          #expect(throws: QueryError.self, "\(store.type) \(op)") {
            try count(.comparison(.property(image), op, .constant(.data(value)), []))
          }
        }
        #expect(throws: QueryError.self, "\(store.type)") { try count(.membership(.property(image), [.data(value)])) }
      }
      #expect(throws: QueryError.self, "\(store.type)") { try count(.comparison(.property(image), .equalTo, .property(image), [])) }
      var sorted = FetchRequest<Photo>()
      sorted.sorts = [SortTerm(image)]
      #expect(throws: QueryError.self, "\(store.type)") { try context.fetch(sorted) }
      // The same while there are unsaved changes.
      Gallery.insert(9, nil, context)
      #expect(throws: QueryError.self, "\(store.type)") {
        try count(.comparison(.property(image), .equalTo, .constant(.data(Data([1]))), []))
      }
      #expect(try count(.comparison(.property(image), .equalTo, .constant(.null), [])) == 2, "\(store.type)")
      try context.persistentStoreCoordinator.close()
    }
  }

  private struct Encoded: RawRepresentable, AttributeValue {
    let rawValue: Data
    static func load(_ row: RowPointer, _ slot: SlotIndex) -> Encoded { Encoded(rawValue: Data.load(row, slot)) }
  }

  private final class Scan: ManagedObject {
    override class var entityName: String { "Photo" }
    var image: Encoded? {
      get { self[Photo.Slot.image] }
      set { self[Photo.Slot.image] = newValue }
    }
    var present: Encoded { self[Photo.Slot.image] }
  }

  /// The bug: such properties had the name of the file as their value.
  @Test(arguments: FileStore.all)
  func aTypeWhoseRawValuesAreBytesReadsThemFromTheFile(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind), image = Gallery.bytes(1, 3000), other = Gallery.bytes(2, 10)
    _ = try gallery.make([image])
    let store = kind.description(at: gallery.path, Gallery.small)
    let coordinator = try PersistentStoreCoordinator(model: Gallery.model, store: store)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [Scan.self])
    let scan = try #require(try context.fetch(FetchRequest<Scan>(entityName: "Photo")).first)
    #expect(scan.image?.rawValue == image && scan.present.rawValue == image)
    scan.image = Encoded(rawValue: other)
    try context.save()
    #expect(scan.image?.rawValue == other && scan.present.rawValue == other)
    scan.image = nil
    #expect(scan.image == nil && scan.present.rawValue.isEmpty)
    context.rollback()
    try coordinator.close()
  }

  /// The bug: the closure received the name of the file.
  @Test(arguments: FileStore.all)
  func theBytesInASlotAreThoseInTheFile(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind), images = [Gallery.bytes(1, 3000), Gallery.bytes(2, 10)]
    _ = try gallery.make(images)
    let context = try gallery.open()
    let found = try Gallery.photos(context).map { photo in photo.withUTF8(Photo.Slot.image) { Data($0) } }
    #expect(found == images)
    try context.persistentStoreCoordinator.close()
  }

  @Test func namesOfFilesCannotBeSetOrUsedAsDefaultsOrUniqueValues() throws {
    let context = try Gallery.context(.memory())
    let photo = Gallery.insert(1, Data([1]), context)
    #expect(throws: PersistenceError.self) { try photo.setValue(.externalData(UUID()), forKey: "image") }
    #expect(photo.image == Data([1]))
    var image = AttributeDescription("image", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    #expect(throws: ModelError.self) {
      try ManagedObjectModel(entities: [EntityDescription("Photo", attributes: [image], uniquenessConstraints: [["image"]])])
    }
    image.defaultValue = .externalData(UUID())
    #expect(throws: ModelError.self) { try ManagedObjectModel(entities: [EntityDescription("Photo", attributes: [image])]) }
  }

  @Test(arguments: FileStore.all)
  func valuesAboveTheMaximumSizeAreRefused(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    let options = ExternalDataOptions(threshold: 1000, maximumByteCount: 5000)
    let context = try gallery.open(options)
    let photo = Gallery.insert(1, Gallery.bytes(1, 5000), context)
    try context.save()
    let files = gallery.files
    photo.image = Gallery.bytes(2, 5001)
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .unstorableValue && "\(error.map { "\($0)" } ?? "")".contains("Photo.image"))
    #expect(gallery.files == files && gallery.notes.isEmpty)
    photo.image = Gallery.bytes(2, 4999)
    try context.save()
    try context.persistentStoreCoordinator.close()

    // A lower maximum applies to reading too.
    let strict = try gallery.open(ExternalDataOptions(threshold: 1000, maximumByteCount: 4998))
    let found = try #require(try Gallery.photos(strict).first)
    let refusal = #expect(throws: StoreError.self) { try found.value(forKey: "image") }
    #expect(refusal?.code == .tooLarge && found.number == 1)
    try strict.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.all)
  func randomSavesKeepTheFilesThatRowsNameAndNoOthers(kind: FileStore) throws {
    var random = SeededGenerator("External data, random saves, \(kind)")
    let gallery = try GalleryFolder(kind)
    var expected: [Int64: Data?] = [:]
    var next: Int64 = 0
    var context = try gallery.open()
    for round in 0..<120 {
      if round % 17 == 16 {
        try context.persistentStoreCoordinator.close()
        #expect(gallery.notes.isEmpty)
        context = try gallery.open()
      } else if round % 5 == 4 {
        context = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Photo.self])
      }
      var photos = try Gallery.photos(context)
      var changed = expected
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let image = [nil, 5, 1000, 1001, 3000].randomElement(using: &random)!.map { Gallery.bytes(Int64(round), $0) }
        switch Int.random(in: 0..<4, using: &random) {
        case 0 where !photos.isEmpty:
          let photo = photos.remove(at: Int.random(in: 0..<photos.count, using: &random))
          changed[photo.number] = nil
          context.delete(photo)
        case 1 where !photos.isEmpty, 2 where !photos.isEmpty:
          let photo = photos.randomElement(using: &random)!
          photo.image = image
          changed[photo.number] = .some(image)
        case 3 where !photos.isEmpty: photos.randomElement(using: &random)!.title = "\(round)"
        default:
          Gallery.insert(next, image, context)
          changed[next] = .some(image)
          next += 1
        }
      }
      if Int.random(in: 0..<5, using: &random) == 0 {
        context.rollback()
      } else {
        try context.save()
        expected = changed
      }
      #expect(try gallery.files == GalleryFolder.names(context).compactMap { $0 }.sorted(), "round \(round)")
      #expect(gallery.files.count == expected.values.count { ($0?.count ?? 0) > 1000 }, "round \(round)")
    }
    for photo in try Gallery.photos(context) { #expect(expected[photo.number] == .some(photo.image)) }
    for photo in try Gallery.photos(context) { context.delete(photo) }
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(gallery.files.isEmpty && gallery.notes.isEmpty)
  }

  private func permissions(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require(attributes[.posixPermissions] as? NSNumber).intValue
  }
}

/// Wraps a store in a store that fails.
private final class FaultBox: @unchecked Sendable {  // because a test uses it on one thread
  var store: FaultInjectingStore?

  func wrapping(_ description: StoreDescription) -> StoreDescription {
    description.wrapped { [self] base in
      let wrapped = FaultInjectingStore(base)
      store = wrapped
      return wrapped
    }
  }

  func failNextCommit() { store?.fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test said so.")) }
}

/// Wraps a store in a store that records requests.
private final class RecordingBox: @unchecked Sendable {  // because a test uses it on one thread
  var store: RecordingStore?

  func wrapping(_ description: StoreDescription) -> StoreDescription {
    description.wrapped { [self] base in
      let wrapped = RecordingStore(base)
      store = wrapped
      return wrapped
    }
  }
}
