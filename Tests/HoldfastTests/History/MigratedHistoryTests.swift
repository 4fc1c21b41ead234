import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Histories of files whose entities were removed or renamed. ``HistoryTests`` has new entities and properties.
@Suite struct MigratedHistoryTests {
  private let folder = TemporaryFolder()

  /// Saves Ann, Fido and Rex, then changes of Fido and Ann, the deletion of Rex, and another change of Ann.
  ///
  /// - Returns: Fido's key, and the position after the last transaction.
  private func fill(_ store: HistoryStore) throws -> (fido: ObjectKey, token: PersistentHistoryToken) {
    let coordinator = try store.coordinator(HistoryModel.model(keepsValues: true), folder), context = try HistoryModel.context(coordinator)
    let ann = try HistoryModel.insert("Person", "Ann", context), fido = try HistoryModel.insert("Dog", "Fido", context),
      rex = try HistoryModel.insert("Dog", "Rex", context)
    try fido.setValue(ann, forKey: "owner")
    try context.save()
    try fido.setValue(7, forKey: "age")
    try ann.setValue("Anna", forKey: "name")
    try context.save()
    context.delete(rex)
    try context.save()
    try ann.setValue("Anne", forKey: "name")
    try context.save()
    let found = (fido.objectID.key, try coordinator.currentPersistentHistoryToken())
    try coordinator.close()
    return found
  }

  /// The changes of other entities stay, with their values. A transaction can be left without changes.
  @Test(arguments: HistoryStore.allCases) func changesOfARemovedEntityAreDeleted(_ store: HistoryStore) throws {
    let (fido, token) = try fill(store)
    var entities = try HistoryModel.model(keepsValues: true).declarations.filter { $0.name != "Person" }
    for place in entities.indices { entities[place].relationships.removeAll { $0.destination == "Person" } }
    let coordinator = try PersistentStoreCoordinator(
      model: ManagedObjectModel(entities: entities),
      store: store.description(store.path(folder), .ifPresent).migrating(removingData: true))
    let transactions = try coordinator.fetchHistory().transactions
    #expect(transactions.map(\.transactionNumber) == [1, 2, 3, 4] && transactions.map(\.changes.count) == [2, 1, 1, 0])
    #expect(transactions.flatMap(\.changes).allSatisfy { $0.changedObjectID.entityName == "Dog" })
    let update = try #require(transactions[1].changes.first)
    // Dogs have lost a property.
    #expect(update.changedObjectID.key == fido && update.changeType == .update && update.updatedProperties == nil)
    #expect(update.valuesBefore == ["age": .int16(1)] && update.valuesAfter == ["age": .int16(7)])
    #expect(transactions[2].changes.map(\.tombstone) == [["name": .string("Rex")]])
    #expect(try coordinator.fetchHistory(after: token).transactions.isEmpty)
    try coordinator.close()
  }

  /// Their names are in the kept values, so these are deleted. The next save keeps values again.
  @Test(arguments: HistoryStore.allCases) func changesOfARenamedEntityStayWithoutTheirValues(_ store: HistoryStore) throws {
    let (fido, token) = try fill(store)
    var entities = try HistoryModel.model(keepsValues: true).declarations
    for place in entities.indices {
      if entities[place].name == "Dog" { (entities[place].name, entities[place].renamingIdentifier) = ("Hound", "Dog") }
      for other in entities[place].relationships.indices where entities[place].relationships[other].destination == "Dog" {
        entities[place].relationships[other].destination = "Hound"
      }
    }
    let coordinator = try store.coordinator(ManagedObjectModel(entities: entities), folder, .ifPresent)
    let transactions = try coordinator.fetchHistory().transactions
    #expect(transactions.map(\.transactionNumber) == [1, 2, 3, 4] && transactions.map(\.changes.count) == [3, 2, 1, 1])
    #expect(Set(transactions.flatMap(\.changes).map(\.changedObjectID.entityName)) == ["Hound", "Person"])
    #expect(transactions.flatMap(\.changes).allSatisfy { $0.valuesBefore == nil && $0.valuesAfter == nil })
    let update = try #require(transactions[1].changes.first { $0.changedObjectID.entityName == "Hound" })
    #expect(update.changedObjectID.key == fido && update.updatedProperties == ["age"])
    #expect(transactions[2].changes.map(\.tombstone) == [["name": .string("Rex")]])
    let context = try HistoryModel.context(coordinator)
    try context.existingObject(with: update.changedObjectID).setValue(8, forKey: "age")
    try context.save()
    let last = try coordinator.fetchHistory(after: token).changes
    #expect(last.map(\.changedObjectID) == [update.changedObjectID])
    #expect(last.map(\.valuesBefore) == [["age": .int16(7)]] && last.map(\.valuesAfter) == [["age": .int16(8)]])
    try coordinator.close()
  }
}
