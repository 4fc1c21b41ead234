import TestSupport
import Testing

@testable import HoldfastAtomicStore

/// The record of saves in a file, compared with the history of its versions.
@Suite struct LineageTests {
  private func lineage(_ saves: (UInt64, Int64)...) -> Lineage {
    var lineage = Lineage()
    for (session, generation) in saves { lineage.append(Lineage.Save(session: session, generation: generation)) }
    return lineage
  }

  @Test func aVersionDescendsFromItselfAndFromEarlierSavesOfItsSessions() {
    let version = lineage((1, 1), (2, 2), (1, 3))
    #expect(version.descends(from: version))
    #expect(version.descends(from: lineage((1, 1))) && version.descends(from: lineage((1, 1), (2, 2))))
    #expect(!lineage((1, 1)).descends(from: version))
  }

  @Test func copiesThatWereSavedOnTheirOwnDoNotDescendFromEachOther() {
    let ours = lineage((1, 1), (2, 2)), theirs = lineage((1, 1), (3, 2), (3, 3))
    #expect(!ours.descends(from: theirs) && !theirs.descends(from: ours))
  }

  @Test func nothingDescendsFromAFileWithoutLineage() {
    #expect(!lineage((1, 1)).descends(from: Lineage()) && !Lineage().descends(from: Lineage()))
  }

  @Test func theLatestSessionsAreKeptInAFile() {
    var version = Lineage()
    for number in 1...UInt64(Lineage.most) { version.append(Lineage.Save(session: number, generation: Int64(number))) }
    #expect(version.descends(from: lineage((1, 1))) && version.saves.count == Lineage.most)
    version.append(Lineage.Save(session: 2, generation: 100))
    #expect(version.descends(from: lineage((1, 1))) && version.saves.count == Lineage.most)
    version.append(Lineage.Save(session: 1_000, generation: 101))
    #expect(!version.descends(from: lineage((1, 1))) && version.descends(from: lineage((3, 3))))
    #expect(Lineage(version.bytes) == version && version.bytes.count == 16 * Lineage.most)
  }

  @Test(arguments: [1, 15, 17, 16 * 33]) func bytesThatAreNoLineageCountAsNone(count: Int) {
    #expect(Lineage([UInt8](repeating: 1, count: count)) == Lineage())
  }

  /// A version of a file in a tree of versions.
  private struct Version {
    var parent: Int?
    var lineage: Lineage
    var generation: Int64
  }

  /// An open store, with the version that it last read or saved.
  private struct OpenStore {
    var known: Int
    var session: UInt64
    var generation: Int64
  }

  /// Random copies, saves and replacements by any number of open stores. Prints its seed; HOLDFAST_SEED repeats a run.
  @Test(arguments: 0..<20) func aVersionDescendsFromAnotherExactlyIfItWasMadeFromIt(round: Int) {
    var random = SeededGenerator("Lineages, \(round)")
    var versions = [Version(parent: nil, lineage: lineage((0, 1)), generation: 1)], stores: [OpenStore] = [], lastSession: UInt64 = 0
    func newSession() -> UInt64 {
      lastSession += 1
      return lastSession
    }
    func isMade(_ version: Int, from other: Int) -> Bool {
      var place: Int? = version
      while let current = place, current >= other {
        if current == other { return true }
        place = versions[current].parent
      }
      return false
    }
    for _ in 0..<150 {
      let found = Int.random(in: max(0, versions.count - 12)..<versions.count, using: &random)
      if stores.count < 2 || (lastSession < 25 && Int.random(in: 0..<8, using: &random) == 0) {
        stores.append(OpenStore(known: found, session: newSession(), generation: versions[found].generation))
        continue
      }
      let place = Int.random(in: stores.indices, using: &random)
      var store = stores[place]
      // Another program may have put any version at the store's path. The rules are those of a save.
      if Bool.random(using: &random) {
        let (known, other) = (versions[store.known].lineage, versions[found].lineage)
        #expect(other.descends(from: known) == isMade(found, from: store.known))
        #expect(known.descends(from: other) == isMade(store.known, from: found))
        if !other.descends(from: known) {
          if !known.descends(from: other) || lastSession >= 30 { continue }
          store.session = newSession()
        }
        store.known = found
        store.generation = max(store.generation, versions[found].generation)
      }
      // Some saves fail after they have used a generation number.
      store.generation += Int64.random(in: 1...2, using: &random)
      var lineage = versions[store.known].lineage
      lineage.append(Lineage.Save(session: store.session, generation: store.generation))
      versions.append(Version(parent: store.known, lineage: lineage, generation: store.generation))
      store.known = versions.count - 1
      stores[place] = store
    }
    for version in versions.indices {
      for other in versions.indices where versions[version].lineage.descends(from: versions[other].lineage) != isMade(version, from: other)
      {
        Issue.record("HOLDFAST_SEED=\(random.seed): versions \(version) and \(other)")
        return
      }
    }
  }
}
