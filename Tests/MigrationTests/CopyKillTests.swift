import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Copies to other stores that are killed at each of their system calls, traced by strace.
@Suite(.ownThreads) struct CopyKillTests {
  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite])
  func RA4_aProcessThatIsKilledAtAnyCallOfACopyLeavesTheFormerDestinationOrTheCopy(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledCopy(destination: store, isMove: false).run()
    }
    report(child)
  }

  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite])
  func RA4_aProcessThatIsKilledAtAnyCallOfAMoveLeavesTheOriginalOrTheCopy(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledCopy(destination: store, isMove: true).run()
    }
    report(child)
  }

  /// The files are copied, and not their objects. The original is removed afterwards.
  @Test(arguments: [MigratedStore.json, .xml, .binary])
  func RA4_aProcessThatIsKilledAtAnyCallOfAMoveToTheSameTypeLeavesTheOriginalOrTheCopy(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledCopy(source: store, destination: store, isMove: true).run()
    }
    report(child)
  }
}

/// Runs in a separate process.
private struct KilledCopy {
  let source: MigratedStore
  let destination: MigratedStore
  let isMove: Bool
  /// The stores before the copy or the move. Each process works on copies.
  private let originals: Places
  private let zoo: ManagedObjectModel
  private let lines = (former: ["Dog former: photo=nil walks=[]"], copy: ["Dog a: photo=300000 bytes 7 walks=[1]", "Walk 1: dog=a"])

  init(source: MigratedStore = .sqlite, destination: MigratedStore, isMove: Bool) throws {
    (self.source, self.destination, self.isMove) = (source, destination, isMove)
    originals = Places(source: MigratedStore.Place(source), destination: MigratedStore.Place(destination))
    zoo = try model(
      EntityDescription(
        "Dog", attributes: [.init("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)],
        relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
      EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]))
  }

  private struct Places {
    let source: MigratedStore.Place
    let destination: MigratedStore.Place
  }

  func run() throws {
    try apart {
      try originals.source.fill(zoo) { context in
        let dog = try context.add("Dog", "a", ["photo": .data(Data(repeating: 7, count: 300_000))])
        try dog.setValue([try context.add("Walk", "1")], forKey: "walks")
      }
      try originals.destination.fill(zoo) { try $0.add("Dog", "former") }
    }
    guard let whole = try watched(killingAt: nil) else { return print(Tracer.skipped) }
    demand(whole.run.isSuccess, "The process could not copy: \(whole.run.lines.suffix(5))")
    let step = TestTier.step(calls: whole.run.calls.count, kills: 4), first = Int.random(in: 0..<step)
    var (kills, copied) = (0, 0)
    for (place, call) in whole.run.calls.enumerated() where place % step == first {
      guard let (run, places) = try watched(killingAt: call) else { return print(Tracer.skipped) }
      demand(run.isKilled || run.isSuccess, "\(call): the process ended with \(run.status)")
      if run.isKilled { kills += 1 }
      do { if try apart({ try survey(places, call, isKilled: run.isKilled) }) { copied += 1 } } catch {
        complain("\(call), after which \(places.destination.folder.namesOfAllLevels): \(error)")
      }
    }
    demand(kills > 0, "No kills")
    print(
      "REPORT RA4, \(isMove ? "move" : "copy") of \(source) to \(destination), from call \(first), each \(step): killed at \(kills) of \(whole.run.calls.count) calls, "
        + "\(copied) were done")
  }

  /// Copies a store over another one in a traced process.
  private func watched(killingAt call: Tracer.Call?) throws -> (run: Tracer.Run, places: Places)? {
    let places = Places(source: try originals.source.copied(), destination: try originals.destination.copied())
    let run = try Tracer.run(notes: places.source.folder.path + ".trace", killingAt: call) {
    } _: {
      try copy(places)
    }
    return run.map { ($0, places) }
  }

  private func copy(_ places: Places) throws {
    let (source, destination) = (places.source.description, places.destination.description)
    if isMove {
      try PersistentStoreCoordinator.movePersistentStore(source, to: destination)
    } else {
      try PersistentStoreCoordinator.replacePersistentStore(destination, withCopyOf: source)
    }
  }

  /// Whether the destination is the copy.
  private func survey(_ places: Places, _ call: Tracer.Call, isKilled: Bool) throws -> Bool {
    let isMoved = isMove && !places.source.folder.exists("Store")
    if !isMoved { demand(try places.source.contents(zoo) == lines.copy, "\(call): the source changed.") }
    let found = try places.destination.contents(zoo)
    demand(
      found == lines.copy || (found == lines.former && isKilled && !isMoved), "\(call): the destination has other contents: \(found)")
    if isMoved { return true }
    try copy(places)
    demand(try places.destination.contents(zoo) == lines.copy, "\(call): it can't be repeated.")
    demand(!isMove || !places.source.folder.exists("Store"), "\(call): the original remains after the second move.")
    return found == lines.copy
  }
}
