import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Tests rules S13 and S14 of the store contract: values derived from other objects.
enum DerivedCases {
  static let all = [
    StoreConformanceCase("S13", "derived values are set regardless of the version, which doesn't change", values),
    StoreConformanceCase("S13", "numbers are added to the stored values", additions),
    StoreConformanceCase("S13", "adding to nil leaves nil", additionsToNothing),
    StoreConformanceCase("S13", "deleted rows are ignored", goneRows),
    StoreConformanceCase("S13", "derived values are applied after all other changes of a save", comingLast),
    StoreConformanceCase("S13", "a sum that doesn't fit its type is refused, and the store stays unchanged", overflow),
    StoreConformanceCase("S13", "encoding and decoding the request doesn't change the result", codedRequest),
    StoreConformanceCase("S13", "derived values are stored durably", reopening),
    StoreConformanceCase("S13", "derived values beyond the 64th property", wideRows),
    StoreConformanceCase("S9", "an aborted save doesn't change derived values", aborted),
    StoreConformanceCase(
      "V1", "a save of derived values doesn't change a snapshot", requires: .with { $0.snapshots = true }, snapshots),
    StoreConformanceCase("S14", "an update doesn't change a derived attribute that isn't marked", unmarked),
  ]

  private static func make(_ run: CaseRun) throws -> (store: TestedStore, graph: ExpectedGraph, keys: [ObjectKey]) {
    let store = try run.openNew(ConformanceModel.derived)
    return try fill(store)
  }

  /// Inserts three baskets with numbers and one large basket.
  private static func fill(_ store: TestedStore) throws -> (store: TestedStore, graph: ExpectedGraph, keys: [ObjectKey]) {
    let graph = ExpectedGraph(store)
    let keys = try store.keys("Basket", 3), big = try store.keys("BigBasket", 1)
    try store.save(graph) { edit in
      for (place, key) in keys.enumerated() {
        edit.insert(
          "Basket", key, version: RowVersion(Int64(place + 1)),
          [
            "name": .string("Basket \(place)"), "code": .int64(Int64(place)), "count": .int16(Int16(place)), "weight": .int64(10),
            "price": .decimal(Decimal(place) + 0.5), "length": .double(0.25), "shopName": .string("Shop"), "key": .string("basket"),
          ])
      }
      edit.insert("BigBasket", big[0], ["name": .string("Big"), "code": .int64(100), "count": .int16(7), "again": .int32(7)])
    }
    return (store, graph, keys + big)
  }

  private static func values(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    try store.save(graph) { edit in
      edit.derive("Basket", keys[0], set: ["count": .int16(40), "shopName": .null, "length": .double(1.5), "price": .decimal(7)])
      edit.derive("Basket", keys[2], set: ["shopName": .string(String(repeating: "long ", count: 1000)), "weight": .int64(.max)])
      edit.derive("BigBasket", keys[3], set: ["again": .int32(8), "shopName": .string("")])
    }
    try store.expectContents(graph, "after setting derived values")
  }

  private static func additions(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    let items = try store.keys("Item", 3)
    for number in 1...3 {
      try store.save(graph) { edit in
        edit.derive(
          "Basket", keys[1], set: ["length": .double(Double(number))],
          add: ["count": .int16(1), "weight": .int64(-100), "price": .decimal(Decimal(number) / 10)])
        edit.derive("BigBasket", keys[3], add: ["again": .int32(-3), "count": .int16(100)])
        edit.insert("Item", items[number - 1], ["basket": .key(keys[1])])
      }
    }
    try store.expectContents(graph, "after adding numbers three times")
  }

  private static func additionsToNothing(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    try store.save(graph) { edit in
      edit.derive("BigBasket", keys[3], add: ["weight": .int64(3), "price": .decimal(1), "count": .int16(1)])
    }
    try store.expectContents(graph, "after adding numbers to nil")
  }

  private static func goneRows(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    try store.save(graph) { edit in
      edit.delete("Basket", keys[0])
      edit.derive("Basket", keys[0], set: ["shopName": .string("gone")], add: ["count": .int16(1)])
      edit.derive("Basket", keys[1], add: ["count": .int16(1)])
      edit.derive("Basket", ObjectKey(1 << 40), set: ["count": .int16(9)])
    }
    try store.expectContents(graph, "after derived values for missing rows")
  }

  private static func comingLast(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    let shop = try store.keys("Shop", 1)[0], new = try store.keys("Basket", 1)[0]
    try store.save(graph) { edit in
      edit.insert("Shop", shop, ["name": .string("New")])
      edit.insert("Basket", new, ["name": .string("New"), "count": .int16(5), "weight": .int64(1)])
      edit.derive("Basket", new, set: ["shopName": .string("New")], add: ["count": .int16(2)])
      edit.update("Basket", keys[1], ["name": .string("Renamed"), "shop": .key(shop), "shopName": .string("before")])
      edit.derive("Basket", keys[1], set: ["shopName": .string("New")], add: ["weight": .int64(5)])
    }
    try store.expectContents(graph, "after a save with changes of every kind")
    try store.save(graph) { edit in
      edit.delete("Shop", shop)
      edit.derive("Basket", keys[1], set: ["shopName": .null])
    }
    try store.expectContents(graph, "after a deletion that removed a reference from the row")
  }

  private static func overflow(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    try store.save(graph) { edit in edit.derive("Basket", keys[0], set: ["count": .int16(.max), "weight": .int64(.min)]) }
    for (name, value) in [("count", StoreValue.int16(1)), ("weight", .int64(-1))] {
      let edit = GraphEdit(graph)
      edit.update("Basket", keys[1], ["name": .string("not saved")])
      edit.derive("Basket", keys[0], add: [name: value])
      do {
        try store.store.prepare(edit.request()).abort()
        run.fail("a sum beyond the type of \(name) to be refused", got: "no error")
      } catch let error as StoreError {
        run.expectEqual(error.code, .unstorableValue, "the error code for a sum beyond the type of \(name)")
      }
    }
    try store.expectContents(graph, "after sums that don't fit")
  }

  private static func codedRequest(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    let edit = GraphEdit(graph)
    edit.derive(
      "Basket", keys[0], set: ["shopName": .string("coded"), "length": .null], add: ["weight": .int64(4), "price": .decimal(0.25)])
    try store.save(CodedCopy.of(edit.request()))
    edit.apply()
    try store.expectContents(graph, "after a decoded request")
  }

  private static func reopening(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let (store, graph, keys) = try fill(try run.open(place, ConformanceModel.derived))
    for number in 0..<50 {
      try store.save(graph) {
        $0.derive("Basket", keys[number % 3], set: ["shopName": .string("Shop \(number)")], add: ["weight": .int64(1)])
      }
    }
    try store.expectContents(graph, "after fifty saves of only derived values")
    try run.close(store)
    try run.open(place, ConformanceModel.derived).expectContents(graph, "after reopening")
  }

  private static func wideRows(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.wideDerived), graph = ExpectedGraph(store)
    let keys = try store.keys("Wide", 3)
    try store.save(graph) { edit in
      for key in keys {
        edit.insert("Wide", key, ["n00": .int64(1), "zCount": .int64(1), "zShop": .string("Shop"), "zTotal": .int64(10)])
      }
    }
    try store.save(graph) { edit in
      edit.derive("Wide", keys[0], set: ["zShop": .string("Other")], add: ["zCount": .int64(1)])
      edit.derive("Wide", keys[2], set: ["zTotal": .null], add: ["zCount": .int64(-1)])
    }
    try store.expectContents(graph, "after derived values of wide rows changed")
    try store.save(graph) { edit in
      edit.update("Wide", keys[0], ["n00": .int64(2)], stale: ["zCount": .int64(99)])
      edit.update("Wide", keys[1], ["n65": .int64(3)], stale: ["zShop": .null])
    }
    try store.expectContents(graph, "after updates of wide rows with outdated derived values")
    try run.close(store)
    try run.open(place, ConformanceModel.wideDerived).expectContents(graph, "after reopening")
  }

  /// Changes derived values of existing rows.
  private static func derive(_ edit: GraphEdit, _ keys: [ObjectKey]) {
    edit.derive("Basket", keys[0], set: ["shopName": .string("Other"), "length": .double(9)], add: ["count": .int16(5)])
    edit.derive("BigBasket", keys[3], set: ["shopName": .string("Big")], add: ["again": .int32(1)])
  }

  private static func aborted(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    let edit = GraphEdit(graph)
    derive(edit, keys)
    let prepared = try store.store.prepare(edit.request())
    try store.expectContents(graph, "while derived values are prepared")
    prepared.abort()
    try store.expectContents(graph, "after an abort")
    try store.save(graph) { derive($0, keys) }
    try store.expectContents(graph, "after an abort and a save of the same values")
  }

  private static func snapshots(_ run: CaseRun) throws {
    for kind in [ReadViewKind.consistent, .snapshot] {
      let (store, graph, keys) = try make(run)
      let before = ExpectedGraph(graph), view = try store.store.beginRead(kind)
      try store.save(graph) { derive($0, keys) }
      try store.expectContents(before, "in a \(kind) view from before derived values changed", in: view)
      view.end()
      try store.expectContents(graph, "after derived values changed")
    }
  }

  private static func unmarked(_ run: CaseRun) throws {
    let (store, graph, keys) = try make(run)
    try store.save(graph) { edit in
      edit.derive("Basket", keys[0], set: ["shopName": .string("Other")], add: ["count": .int16(3)])
      edit.derive("BigBasket", keys[3], add: ["again": .int32(3)])
    }
    try store.save(graph) { edit in
      edit.update(
        "Basket", keys[0], ["name": .string("Renamed")], stale: ["count": .int16(0), "shopName": .string("Shop"), "length": .null])
      edit.update("Basket", keys[1], ["name": .string("Also"), "key": .string("also")], stale: ["weight": .null])
      edit.update("BigBasket", keys[3], [:], stale: ["again": .int32(7)])
    }
    try store.expectContents(graph, "after updates with outdated derived values")
  }
}
