import Foundation
import HoldfastMemoryStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// What handlers and callbacks may do, and objects that were removed from the graph.
@Suite struct CallbackTests {
  @Test(arguments: TestStore.allCases) func aHandlerOfASaveMaySaveAgain(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    var heard: [String] = []
    let first = context.onSave { context, changes in
      heard.append("first \(changes.inserted.count) \(changes.updated.count)")
      guard let dog = context.registeredObjects.compactMap({ $0 as? Dog }).first, dog.age < 3 else { return }
      dog.age += 1
      #expect(throws: Never.self) { try context.save() }
    }
    let second = context.onSave { _, changes in heard.append("second \(changes.inserted.count) \(changes.updated.count)") }
    defer { withExtendedLifetime((first, second)) {} }
    let dog = context.dog("Fido", age: 1)
    try context.save()
    // All receive the saves in the same order.
    #expect(heard == ["first 1 0", "second 1 0", "first 0 1", "second 0 1", "first 0 1", "second 0 1"])
    #expect(!context.hasChanges && dog.age == 3)
    #expect(try place.context().one(Dog.self) { $0.name == "Fido" }?.age == 3)
  }

  /// The bug: the second handler received the deletion of the dog before its insertion.
  @Test(arguments: TestStore.withChild) func handlersReceiveTheChangesThatOneOfThemMakesInOrder(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    var heard: [String] = [], known: Set<ManagedObjectID> = []
    let first = context.onChange { context, changes in
      heard.append("first \(changes.inserted.count) \(changes.deleted.count)")
      guard let id = changes.inserted.first, let dog = context.registeredObject(for: id) else { return }
      context.delete(dog)
      #expect(throws: Never.self) {
        let count = try context.count(for: FetchRequest<Dog>())
        #expect(count == 0)
      }
    }
    let second = context.onChange { _, changes in
      heard.append("second \(changes.inserted.count) \(changes.deleted.count)")
      known.formUnion(changes.inserted)
      known.subtract(changes.deleted)
    }
    context.dog("Fido")
    try context.processPendingChanges()
    #expect(heard == ["first 1 0", "second 1 0", "first 0 1", "second 0 1"] && known.isEmpty)
    try context.processPendingChanges()
    #expect(heard.count == 4)
    withExtendedLifetime((first, second)) {}
  }

  /// It gets an error while the context is being saved: that save has its changes already.
  @Test(arguments: TestStore.allCases) func aHandlerOfChangesMaySaveExceptDuringASave(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    var codes: [PersistenceError.Code?] = []
    let observation = context.onChange { context, _ in
      do {
        try context.save()
        codes.append(nil)
      } catch { codes.append((error as? PersistenceError)?.code) }
    }
    let dog = context.dog("Fido", age: 1)
    try context.save()
    #expect(codes == [.saveInProgress] && !context.hasChanges)
    dog.age = 2
    try context.processPendingChanges()
    #expect(codes == [.saveInProgress, nil] && !context.hasChanges)
    #expect(try place.context().one(Dog.self) { $0.name == "Fido" }?.age == 2)
    withExtendedLifetime(observation) {}
  }

  private final class Saver: ManagedObject {
    override class var entityName: String { "Saver" }
    static nonisolated(unsafe) var codes: [PersistenceError.Code?] = []  // because one test uses it, in one thread
    private func trySaving() {
      do {
        try managedObjectContext.save()
        Saver.codes.append(nil)
      } catch { Saver.codes.append((error as? PersistenceError)?.code) }
    }
    override func willSave() { trySaving() }
    override func didSave() { trySaving() }
  }

  @Test func aCallbackOfASaveThatSavesGetsAnError() throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Saver")])
    let place = TestStore.Place(.memory, model, [Saver.self]), context = try place.context()
    _ = context.insert(Saver.self)
    try context.save()
    #expect(Saver.codes == [.saveInProgress, .saveInProgress])
    #expect(try context.count(for: FetchRequest<Saver>()) == 1)
  }

  private final class Folder: ManagedObject {
    override class var entityName: String { "Folder" }
    var checks: Int {
      get { self[0] }
      set { self[0] = newValue }
    }
    override func validateForUpdate() { checks += 1 }

    static func model() throws -> ManagedObjectModel {
      try ManagedObjectModel(entities: [
        EntityDescription(
          "Folder", attributes: [AttributeDescription("checks", .integer64, default: .int64(0))],
          relationships: [.toMany("notes", to: "Note", inverse: "folder", deleteRule: .cascade)]),
        EntityDescription("Note", relationships: [.toOne("folder", to: "Folder", inverse: "notes")]),
      ])
    }
  }

  @Test(arguments: TestStore.allCases) func whatAHandlerDeletesAfterTheValidationIsCascaded(_ store: TestStore) throws {
    let place = try store.makePlace(model: Folder.model(), classes: [Folder.self]), context = try place.context()
    let kept = context.insert(Folder.self), deleted = context.insert(Folder.self)
    try context.insert(entityNamed: "Note").setValue(deleted, forKey: "folder")
    try context.save()
    let observation = context.onChange { context, _ in
      if kept.checks == 11 && !deleted.isDeleted && !deleted.isInaccessible { context.delete(deleted) }
    }
    (kept.checks, deleted.checks) = (10, 20)
    try context.save()
    #expect(kept.checks == 11 && deleted.isInaccessible && !context.hasChanges)
    let fresh = try place.context()
    #expect(try fresh.count(for: FetchRequest<Folder>()) == 1)
    #expect(try fresh.count(for: FetchRequest<ManagedObject>(entityName: "Note")) == 0)
    withExtendedLifetime(observation) {}
  }

  /// The bug: the object was reported as updated, so a list of the inserted ones didn't contain it.
  @Test(arguments: TestStore.allCases) func whatAHandlerInsertsAfterTheValidationIsReportedAsInserted(_ store: TestStore) throws {
    let place = try store.makePlace(model: Folder.model(), classes: [Folder.self]), context = try place.context()
    let folder = context.insert(Folder.self)
    try context.save()
    var messages: [ObjectChanges] = [], added: Folder?
    let observation = context.onChange { context, changes in
      messages.append(changes)
      if folder.checks == 11 && added == nil { added = context.insert(Folder.self) }
    }
    folder.checks = 10
    try context.save()
    let new = try #require(added)
    #expect(!new.objectID.isTemporaryID && !context.hasChanges)
    // The notification that follows a rollback has the insertion, too.
    new.checks = 5
    context.rollback()
    #expect(messages.last?.inserted == [new.objectID] && messages.last?.updated.isEmpty == true)
    try context.processPendingChanges()
    #expect(messages.count == 3)
    withExtendedLifetime(observation) {}
  }

  /// Records the total at each call of `willSave`, and whether it is being deleted.
  private final class Bill: ManagedObject {
    enum Slot { static let number: SlotIndex = 0, total: SlotIndex = 1 }
    override class var entityName: String { "Bill" }
    var calls: [String] = []
    var number: Int {
      get { self[Slot.number] }
      set { self[Slot.number] = newValue }
    }
    var total: Int {
      get { self[Slot.total] }
      set { self[Slot.total] = newValue }
    }
    var whenSaved: (Bill) -> Void = { _ in }
    override func willSave() {
      calls.append(isDeleted ? "deleted" : "\(total)")
      whenSaved(self)
    }

    static func model() throws -> ManagedObjectModel {
      let number = AttributeDescription("number", .integer64, default: .int64(0))
      return try ManagedObjectModel(entities: [
        EntityDescription("Bill", attributes: [number, AttributeDescription("total", .integer64, default: .int64(0))])
      ])
    }
  }

  @Test(arguments: TestStore.withChild, [false, true]) func anObjectThatOthersChangeAfterItsWillSaveIsCalledAgain(
    _ store: TestStore, hearsChanges: Bool
  ) throws {
    let place = try store.makePlace(model: Bill.model(), classes: [Bill.self]), context = try place.context()
    var heard = 0
    let observation = hearsChanges ? context.onChange { _, changes in heard += changes.inserted.count } : nil
    let bill = context.insert(Bill.self), line = context.insert(Bill.self), gone = context.insert(Bill.self)
    bill.whenSaved = { bill in
      if !bill.isDeleted { bill.number = bill.total * 10 }
    }
    line.whenSaved = { _ in
      if bill.total != 7 { bill.total = 7 }
    }
    try context.save()
    #expect(bill.calls == ["0", "7"] && line.calls == ["0"] && gone.calls == ["0"])
    #expect(bill.number == 70 && !context.hasChanges)
    #expect(heard == (hearsChanges ? 3 : 0))
    // What it changes about itself doesn't cause another call.
    bill.calls = []
    bill.whenSaved = { $0.total += 1 }
    bill.total = 1
    try context.save()
    #expect(bill.calls == ["1"] && bill.total == 2)
    // One that is deleted after its call learns that it will be deleted.
    gone.number = 1
    line.number = 1
    gone.calls = []
    line.whenSaved = { line in
      if !gone.isDeleted { line.managedObjectContext.delete(gone) }
    }
    try context.save()
    #expect(gone.calls == ["0", "deleted"])
    try context.parent?.save()
    let fresh = try place.context()
    #expect(try fresh.fetch(FetchRequest<Bill>()).map { [$0.number, $0.total] }.sorted { $0[0] < $1[0] } == [[1, 0], [70, 2]])
    withExtendedLifetime(observation) {}
  }

  @Test func objectsThatKeepChangingEachOtherRefuseTheSave() throws {
    let place = TestStore.Place(.memory, try Bill.model(), [Bill.self]), context = try place.context()
    let a = context.insert(Bill.self), b = context.insert(Bill.self)
    a.whenSaved = { _ in b.total += 1 }
    b.whenSaved = { _ in a.total += 1 }
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .endlessSave)
    #expect(context.hasChanges)
    a.whenSaved = { _ in }
    try context.save()
    #expect(try place.context().count(for: FetchRequest<Bill>()) == 2)
    for object in [a, b] { object.whenSaved = { _ in } }
  }

  /// Its own changes, which it receives, too, don't make the save endless.
  @Test(arguments: TestStore.withChild) func aHandlerMayChangeTheSameObjectEachTime(_ store: TestStore) throws {
    let place = try store.makePlace(model: Bill.model(), classes: [Bill.self]), context = try place.context()
    let bill = context.insert(Bill.self), line = context.insert(Bill.self)
    var count = 0
    let observation = context.onChange { _, _ in
      count += 1
      bill.number = count
    }
    try context.save()
    #expect(!context.hasChanges && line.calls == ["0"] && bill.calls == ["0"])
    // Others can still change it afterwards.
    line.whenSaved = { _ in
      if bill.total != 7 { bill.total = 7 }
    }
    line.number = -1
    bill.calls = []
    try context.save()
    #expect(!context.hasChanges && bill.calls.last == "7")
    observation.cancel()
    let saved = bill.number
    try context.parent?.save()
    let numbers = try place.context().fetch(FetchRequest<Bill>()).map { $0.number }
    #expect(numbers.sorted() == [-1, saved])
  }

  private final class Page: ManagedObject {
    override class var entityName: String { "Page" }
    var whenDeleted: ((ManagedObjectContext) -> Void)?
    override func prepareForDeletion() { whenDeleted?(managedObjectContext) }

    static func model() throws -> ManagedObjectModel {
      try ManagedObjectModel(entities: [
        EntityDescription("Book", relationships: [.toMany("pages", to: "Page", inverse: "book", deleteRule: .cascade)]),
        EntityDescription("Page", relationships: [.toOne("book", to: "Book", inverse: "pages")]),
      ])
    }
  }

  /// The bug: the second book was deleted without its page.
  @Test(arguments: TestStore.withChild) func aCallbackOfACascadeCannotSaveAPartOfIt(_ store: TestStore) throws {
    let place = try store.makePlace(model: Page.model(), classes: [Page.self]), context = try place.context()
    let books = try (0..<2).map { _ in try context.insert(entityNamed: "Book") }, pages = books.map { _ in context.insert(Page.self) }
    for (book, page) in zip(books, pages) { try page.setValue(book, forKey: "book") }
    try context.save()
    var codes: [PersistenceError.Code?] = []
    for page in pages {
      page.whenDeleted = { context in
        do {
          try context.save()
          codes.append(nil)
        } catch { codes.append((error as? PersistenceError)?.code) }
      }
    }
    for book in books { context.delete(book) }
    try context.processPendingChanges()
    #expect(codes == [.saveInProgress, .saveInProgress] && pages.allSatisfy(\.isDeleted))
    try context.save()
    let saved = try place.context()
    #expect(try saved.count(for: FetchRequest<Page>()) == 0)
    #expect(try saved.count(for: FetchRequest<ManagedObject>(entityName: "Book")) == 0)
  }

  /// The bug: all pages were deleted nevertheless, without their book.
  @Test(arguments: TestStore.withChild, [true, false])
  func aCallbackOfACascadeMayRevertTheDeletion(_ store: TestStore, _ rollsBack: Bool) throws {
    let place = try store.makePlace(model: Page.model(), classes: [Page.self]), context = try place.context()
    let book = try context.insert(entityNamed: "Book"), pages = (0..<4).map { _ in context.insert(Page.self) }
    for page in pages { try page.setValue(book, forKey: "book") }
    try context.save()
    var callCount = 0
    for page in pages {
      page.whenDeleted = { context in
        callCount += 1
        if rollsBack { return context.rollback() }
        #expect(throws: Never.self) { try context.discardChanges(of: [book.objectID]) }
      }
    }
    context.delete(book)
    try context.processPendingChanges()
    #expect(callCount == 1 && !book.isDeleted && pages.allSatisfy { !$0.isDeleted })
    for page in pages { #expect(try page.value(forKey: "book") == .single(.objectID(book.objectID))) }
    try context.save()
    let saved = try place.context()
    #expect(try saved.count(for: FetchRequest<Page>()) == 4)
    let read = try #require(try saved.fetch(FetchRequest<ManagedObject>(entityName: "Book")).first)
    #expect(try read.toMany(forKey: "pages").count == 4)
  }

  private final class Comment: ManagedObject {
    override class var entityName: String { "Comment" }
    var whenDeleted: ((ManagedObjectContext) -> Void)?
    override func prepareForDeletion() { whenDeleted?(managedObjectContext) }
  }

  /// The bug: each step of the cascade ran in the callback of the step before, so a chain of some thousands exhausted the stack.
  @Test(arguments: TestStore.withChild) func theStepsOfACascadeAreNotNestedInCallbacksThatFetch(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Step",
        relationships: [
          .toOne("after", to: "Step", inverse: "before", deleteRule: .cascade), .toOne("before", to: "Step", inverse: "after"),
          .toOne("comment", to: "Comment", inverse: "step", deleteRule: .cascade),
        ]), EntityDescription("Comment", relationships: [.toOne("step", to: "Step", inverse: "comment")]),
    ])
    let place = try store.makePlace(model: model, classes: [Comment.self]), context = try place.context()
    let steps = try (0..<100).map { _ in try context.insert(entityNamed: "Step") }
    let comments = steps.map { _ in context.insert(Comment.self) }
    for (step, comment) in zip(steps, comments) { try step.setValue(comment, forKey: "comment") }
    for (step, next) in zip(steps, steps.dropFirst()) { try step.setValue(next, forKey: "after") }
    try context.save()
    var depth = 0, maximumDepth = 0, callCount = 0
    for comment in comments {
      comment.whenDeleted = { context in
        depth += 1
        callCount += 1
        maximumDepth = max(maximumDepth, depth)
        #expect(throws: Never.self) { _ = try context.count(for: FetchRequest<Comment>()) }
        depth -= 1
      }
    }
    context.delete(steps[0])
    try context.processPendingChanges()
    #expect(maximumDepth <= Deletions.maximumRuleDepth && callCount == comments.count)
    #expect(steps.allSatisfy(\.isDeleted) && comments.allSatisfy(\.isDeleted))
    try context.save()
    let saved = try place.context()
    #expect(try saved.count(for: FetchRequest<Comment>()) == 0)
    #expect(try saved.count(for: FetchRequest<ManagedObject>(entityName: "Step")) == 0)
  }

  @Test(arguments: TestStore.allCases) func anObjectThatLeftTheGraphSaysSoAndTakesNoValues(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let deleted = context.dog("deleted"), rolledBack: Dog
    try context.save()
    context.delete(deleted)
    #expect(!deleted.isInaccessible)
    try context.save()
    rolledBack = context.dog("new")
    context.rollback()
    for dog in [deleted, rolledBack] {
      #expect(dog.isInaccessible && !dog.isDeleted && dog.name.isEmpty && dog.description.contains("inaccessible"))
      #expect(try #require(throws: PersistenceError.self) { try dog.setValue(.string("x"), forKey: "name") }.code == .missingObject)
      #expect(try #require(throws: PersistenceError.self) { try dog.setValue(.null, forKey: "owner") }.code == .missingObject)
      #expect(try #require(throws: PersistenceError.self) { try dog.setValue([], forKey: "friends") }.code == .missingObject)
      #expect(
        try #require(throws: PersistenceError.self) { try dog.setValue(PropertyValue.objects([]), forKey: "friends") }.code
          == .missingObject)
      #expect(try #require(throws: PersistenceError.self) { try dog.setValue(.string("x"), forKeyPath: "name") }.code == .missingObject)
    }
    #expect(!context.hasChanges)
    let kept = context.dog("kept")
    context.reset()
    #expect(kept.isInaccessible)
  }

  private struct Leak: Error {
    let payload: [Payload]
    struct Payload { nonisolated(unsafe) let object: ManagedObject? }  // because the test is about what becomes of it
  }

  @Test(.ownThreads) func anErrorThatHoldsAnObjectTrapsWhereItLeavesItsContext() async {
    for waits in [true, false] {
      let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [waits = waits as Bool] in
        let model = try ManagedObjectModel(entities: [EntityDescription("Saver")])
        let container = try PersistentContainer(model: model, store: .memory())
        let background = container.newBackgroundContext()
        if waits {
          try? background.performAndWait { throw Leak(payload: [.init(object: nil), .init(object: try $0.insert(entityNamed: "Saver"))]) }
        } else {
          try? await background.perform { context throws -> Void in
            throw Leak(payload: [.init(object: nil), .init(object: try context.insert(entityNamed: "Saver"))])
          }
        }
      }
      let output = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
      #expect(output.contains("A thrown error contains a managed object. Throw the object's objectID"))
    }
  }
}
