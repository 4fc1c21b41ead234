import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

/// Objects are found by their keys, whatever the distances between keys are.
@Suite struct IdentityMapTests {
  private static let count = 5_000
  /// Adjacent keys, one key in each line of the map, multiples of the probing step, and powers of two.
  static let steps: [Int64] = [1, 3, 16, 17, 256, 272, 4_096, 1 << 20, 1 << 40]

  private func faults(_ context: ManagedObjectContext, _ first: ManagedObjectID, _ step: Int64) throws -> [ManagedObject] {
    try (0..<IdentityMapTests.count).map { try context.object(with: first.withKey(ObjectKey(1 + Int64($0) * step))) }
  }

  private func place() throws -> (ManagedObjectContext, ManagedObjectID) {
    let place = try TestStore.memory.makePlace(), context = try place.context()
    let id = context.dog("Fido")
    try context.save()
    return (try place.context(), id.objectID)
  }

  @Test(arguments: steps) func anObjectIsTheSameAsLongAsItIsHeldAndLeavesTheOthersFound(step: Int64) throws {
    let (context, first) = try place()
    var objects = try faults(context, first, step)
    #expect(try zip(objects, faults(context, first, step)).allSatisfy { $0 === $1 })
    for round in 0..<4 {
      objects = objects.enumerated().filter { ($0.offset + round) % 3 != 0 }.map(\.element)
      #expect(context.registeredObjects.count == objects.count)
      for object in objects where try context.object(with: object.objectID) !== object {
        Issue.record("There is another object with the key \(object.objectID.key).")
      }
      let more = try faults(context, first, step)
      #expect(Set(more.map(\.objectID)).count == IdentityMapTests.count && context.registeredObjects.count == more.count)
    }
  }

  @Test func newObjectsAreFoundByTheirPermanentKeysAfterEachSave() throws {
    let place = try TestStore.memory.makePlace(), context = try place.context()
    var objects: [ManagedObject] = []
    for round in 1...5 {
      let new: [ManagedObject] = (0..<1_000).map { context.dog("Fido \(round) \($0)") }
      let temporary = new.map(\.objectID)
      try context.save()
      objects += new
      #expect(try objects.allSatisfy { try context.object(with: $0.objectID) === $0 })
      #expect(!temporary.contains { (try? context.object(with: $0)) != nil })
      #expect(context.registeredObjects.count == objects.count)
    }
  }

  /// The bug: loops over the objects of a context, as each deletion makes one, passed as many positions as it ever had objects at once.
  @Test func aContextThatHasReleasedManyObjectsHasFewPositions() throws {
    let (context, first) = try place()
    var objects: [ManagedObject] = try (Int64(1)...50_000).map { try context.object(with: first.withKey(ObjectKey($0))) }
    let entity = objects[0].flags.entityIndex
    objects = objects.enumerated().filter { $0.offset % 100 == 7 }.map(\.element)
    let extent = context.core.registry.extent(sharingRootOf: entity)
    #expect(extent.positions < 16_384 && extent.capacity < 16_384)
    #expect(context.registeredObjects.count == objects.count)
    #expect(try objects.allSatisfy { try context.object(with: $0.objectID) === $0 })
    let more = try faults(context, first, 1)
    #expect(Set(more.map(\.objectID)).count == IdentityMapTests.count)
    #expect(Set((objects + more).map { ObjectIdentifier($0) }).count == context.registeredObjects.count)
    #expect(try (objects + more).allSatisfy { try context.object(with: $0.objectID) === $0 })
    objects = []
    #expect(context.registeredObjects.count == more.count)
  }

  /// The bug: the map was copied for each group of rows.
  @Test func reservingSpaceForSomeObjectsAtATimeRarelyCopiesTheMap() throws {
    let (context, first) = try place(), entity = try context.object(with: first).flags.entityIndex
    var objects: [ManagedObject] = [], capacities: Set<Int> = []
    for start in stride(from: Int64(1), to: 20_000, by: 100) {
      context.core.registry.reserve(100, entity)
      capacities.insert(context.core.registry.extent(sharingRootOf: entity).capacity)
      for key in start..<start + 100 { objects.append(try context.object(with: first.withKey(ObjectKey(key)))) }
    }
    #expect(capacities.count < 25 && context.registeredObjects.count == objects.count)
  }

  @Test(arguments: steps.dropFirst()) func noStepMakesSearchesLong(step: Int64) throws {
    func time(_ step: Int64) throws -> Duration {
      let (context, first) = try place()
      return try processorTime { _ = try faults(context, first, step) }
    }
    try expectCost(below: 20, times: { try time(1) }) { try time(step) }
  }
}
