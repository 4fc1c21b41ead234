import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

/// The keys of deleted objects, and lists that hide them.
@Suite struct DeletionsTests {
  @Test func aSavedDeletionRemainsAndAPendingOneCanBeReverted() {
    let deletions = Deletions(rootCount: 2)
    deletions.insert(1, root: 1)
    #expect(deletions.contains(1, root: 1) && !deletions.contains(1, root: 0))
    #expect(deletions.hasPending(root: 1) && !deletions.hasPending(root: 0) && deletions.isEmpty(root: 0))
    deletions.settle()
    deletions.insert(2, root: 1)
    deletions.revert()
    #expect(deletions.contains(1, root: 1) && !deletions.contains(2, root: 1) && !deletions.hasPending(root: 1))
    deletions.removeAll()
    #expect(deletions.isEmpty(root: 1))
  }

  @Test func theKeysOfObjectsThatWereNeverSavedAreForgottenByASave() {
    let deletions = Deletions(rootCount: 1)
    for key in [-5, 3, -6] as [ObjectKey] { deletions.insert(key, root: 0) }
    deletions.settle()
    #expect(deletions.keys(root: 0, from: 0) == [3])
    deletions.insert(-7, root: 0)
    deletions.settle()
    #expect(deletions.keys(root: 0, from: 0) == [3])
  }

  /// Unsaved objects of another store may still contain them.
  @Test func theyAreKeptByAnIncompleteSave() {
    let deletions = Deletions(rootCount: 1)
    for key in [-5, 3] as [ObjectKey] { deletions.insert(key, root: 0) }
    deletions.settle(isComplete: false)
    #expect(deletions.contains(-5, root: 0) && deletions.contains(3, root: 0))
  }

  /// An object that was deleted and saved can be asked for by its ID and deleted once more.
  @Test func aSavedDeletionThatIsRepeatedIsNotReverted() {
    let deletions = Deletions(rootCount: 1)
    deletions.insert(3, root: 0)
    deletions.settle()
    deletions.insert(3, root: 0)
    deletions.revert()
    #expect(deletions.contains(3, root: 0))
  }

  @Test func aListThatChangedOftenShowsAnObjectWhoseDeletionIsReverted() {
    let deletions = Deletions(rootCount: 1), list = OrderedList([1, 2, 3] as [ObjectKey])
    deletions.insert(2, root: 0)
    list.hide(deletions, root: 0)
    for _ in 0..<10 {
      list.append(4)
      list.remove(4)
    }
    deletions.revert()
    list.hide(deletions, root: 0)
    #expect(list.visibleKeys == [1, 2, 3] && list.visibleCount == 3)
  }

  /// Random deletions, saves, incomplete saves and rollbacks, compared with two sets. Prints its seed; HOLDFAST_SEED repeats a run.
  @Test func randomDeletionsAreThoseOfTwoSetsAndAreHidden() {
    var random = SeededGenerator()
    print("deletions: HOLDFAST_SEED=\(random.seed)")
    let deletions = Deletions(rootCount: 1)
    var saved: Set<ObjectKey> = [], pending: Set<ObjectKey> = []
    let list = OrderedList(Array(0..<ObjectKey(300)))
    for step in 0..<4_000 {
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<14:
        let key = ObjectKey(Int64.random(in: -100..<300, using: &random))
        deletions.insert(key, root: 0)
        if !saved.contains(key) { pending.insert(key) }
      case 14, 15:
        deletions.settle()
        saved.formUnion(pending.filter { $0 >= 0 })
        pending = []
      case 16:
        let rest = pending.filter { $0 >= 0 && Bool.random(using: &random) }
        deletions.settle(pending: [0: rest])
        saved.formUnion(pending.filter { $0 >= 0 && !rest.contains($0) })
        pending = rest
      case 17, 18:
        deletions.revert()
        pending = []
      default:
        if Int.random(in: 0..<10, using: &random) > 0 { continue }
        deletions.removeAll()
        (saved, pending) = ([], [])
      }
      if Bool.random(using: &random) { list.hide(deletions, root: 0) }
      let gone = saved.union(pending)
      guard Set(deletions.keys(root: 0, from: 0)) == gone, deletions.count(root: 0) == gone.count,
        deletions.hasPending(root: 0) == !pending.isEmpty,
        (ObjectKey(-100)..<300).allSatisfy({ deletions.contains($0, root: 0) == gone.contains($0) })
      else {
        Issue.record("HOLDFAST_SEED=\(random.seed) step \(step): \(deletions.keys(root: 0, from: 0)) instead of \(gone)")
        return
      }
    }
    list.hide(deletions, root: 0)
    #expect(list.visibleKeys == (0..<ObjectKey(300)).filter { !saved.union(pending).contains($0) })
  }
}
