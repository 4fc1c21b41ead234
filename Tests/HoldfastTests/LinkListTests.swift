import Foundation
import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

/// Lists of links and rows of changed objects compared with plain sets and values, in random steps.
@Suite struct LinkListTests {
  @Test func aLinkListIsASet() {
    var random = SeededGenerator()
    for _ in 0..<TestTier.count(400, full: 3000) {
      var list = LinkList()
      var set: Set<ObjectKey> = []
      let span = Int64([3, 6, 10, 40, 70, 300].randomElement(using: &random)!)
      for _ in 0..<Int.random(in: 1..<400, using: &random) {
        let key = ObjectKey(Int64.random(in: 0..<span, using: &random) * [1, 4096, 1 << 40].randomElement(using: &random)!)
        switch Int.random(in: 0..<8, using: &random) {
        case 0..<4: #expect(list.insert(key) == set.insert(key).inserted)
        case 4, 5: #expect(list.remove(key) == (set.remove(key) != nil))
        case 6: #expect(list.contains(key) == set.contains(key))
        default:
          if Int.random(in: 0..<60, using: &random) == 0 {
            list.removeAll(); set = []
          } else if Int.random(in: 0..<20, using: &random) == 0 {
            list.translate { $0.advanced(by: 7) }; set = Set(set.map { $0.advanced(by: 7) })
          } else if Int.random(in: 0..<30, using: &random) == 0 {
            let old = list; list = list.withKeys { LinkList(copying: $0) }; old.destroy()
          } else if !set.contains(key) {
            list.append(key); set.insert(key)
          }
        }
        if list.keys.count != set.count || Set(list.keys) != set || Int(list.count) != set.count {
          Issue.record("seed \(random.seed)"); return
        }
      }
      list.destroy()
    }
  }

  @Test func aStoresAnswerThatNamesAnObjectTwiceDoesNotTrap() {
    for isRemovedFirst in [false, true] {
      var state = ToManyState()
      if isRemovedFirst { _ = state.remove(1) }
      _ = state.fire(LinkList([1, 1, 2]))
      for key in [1, 2, 1, 1, 3] as [ObjectKey] { _ = state.remove(key) }
      for key in [1, 3] as [ObjectKey] { _ = state.add(key, isNew: false) }
      state.forgetContents()
      state.revert()
      state.settle()
      #expect(state.base == .untouched && state.keys.isEmpty)
      state.destroy()
    }
  }

  @Test func aStateHasTheSameContentsAsASet() {
    var random = SeededGenerator()
    for _ in 0..<TestTier.count(400, full: 3000) {
      var state = ToManyState()
      var stored = Set((0..<Int.random(in: 0..<50, using: &random)).map { _ in ObjectKey(Int.random(in: 0..<60, using: &random)) })
      var now = stored
      func fire() { _ = state.fire(LinkList(Array(stored))) }
      for _ in 0..<Int.random(in: 1..<120, using: &random) {
        let key = ObjectKey(Int.random(in: 0..<60, using: &random))
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<9: _ = state.add(key, isNew: false); now.insert(key)
        case 9..<17: _ = state.remove(key); now.remove(key)
        case 17: if !state.isKnown { fire() }
        case 18: state.revert(); now = stored
        default:
          // save
          var saved = stored
          for key in state.added { saved.insert(key) }
          for key in state.removed { saved.remove(key) }
          #expect(saved == now)
          stored = saved
          state.settle()
        }
        if state.isKnown && Set(state.contents.keys) != now { Issue.record("seed \(random.seed)"); return }
        if state.isKnown && state.contents.keys.count != now.count { Issue.record("dup seed \(random.seed)"); return }
      }
      state.destroy()
    }
  }

  @Test(arguments: TestStore.allCases) func aChangedRowHoldsWhatWasAssignedLast(_ store: TestStore) throws {
    var random = SeededGenerator()
    let place = try store.makePlace()
    var context = try place.context()
    struct Values: Equatable { var name = "", notes: String?, photo: Data?, chip: Int64?, price: Decimal? }
    var expected: [String: Values] = [:], saved: [String: Values] = [:]
    var ids: [String: Dog] = [:]
    for n in 0..<6 { let dog = context.dog("d\(n)"); ids["\(n)"] = dog; expected["\(n)"] = Values(name: "d\(n)") }
    try context.save(); saved = expected
    func text() -> String {
      String(repeating: "ab🐕c".randomElement(using: &random)!, count: [0, 1, 3, 7, 20, 100, 900].randomElement(using: &random)!)
    }
    for step in 0..<2000 {
      let n = "\(Int.random(in: 0..<6, using: &random))"
      let dog = ids[n]!
      switch Int.random(in: 0..<60, using: &random) {
      case 0..<12: let t = text(); dog.name = t; expected[n]!.name = t
      case 12..<22: let t = text(); dog.notes = t; expected[n]!.notes = t
      case 22..<26: dog.notes = nil; expected[n]!.notes = nil
      case 26..<36: let d = Data(text().utf8); dog.photo = d; expected[n]!.photo = d
      case 36..<40: dog.photo = nil; expected[n]!.photo = nil
      case 40..<44: let d = Decimal(Int.random(in: 0..<1_000_000_000, using: &random)) / 7; dog.price = d; expected[n]!.price = d
      case 44..<48:
        // bytes of one slot into another
        let t = dog.notes ?? ""; dog.name = t; expected[n]!.name = t
      case 48: try context.save(); saved = expected
      case 49: context.rollback(); expected = saved
      case 50 where Int.random(in: 0..<4, using: &random) == 0:
        try context.save(); saved = expected
        let objectIDs = ids.mapValues(\.objectID)
        ids = [:]
        context = try place.context()
        for (k, id) in objectIDs { ids[k] = try context.existingObject(with: id) as? Dog }
      default: break
      }
      for (k, dog) in ids {
        let found = Values(name: dog.name, notes: dog.notes, photo: dog.photo, chip: dog.chip, price: dog.price)
        if found != expected[k]! { Issue.record("seed \(random.seed) step \(step) \(k): \(found) \(expected[k]!)"); return }
      }
    }
  }
}
