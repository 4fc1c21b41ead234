internal import BenchmarkData
internal import BenchmarkRunner
internal import Holdfast

/// The workload on ordered lists. One process creates a list and performs all phases, for every kind of store.
struct ListWorkloads {
  let kind: StoreKind

  func all(_ use: Workload.StoreUse) -> [Workload] {
    let kind = kind
    return [Workload("LIST", .lists, use) { context in try ListWorkloads.run(StoreRun(kind, context)) }]
  }

  private static func run(_ run: StoreRun) throws {
    let plan = run.context.list()
    try StoreFiles(run.context.path).remove()
    let model = try ListModel.make()
    run.begin()
    let context = try run.open(model, ListModel.classes)
    let list = make(plan, context)
    try context.save()
    run.report(ListPhase.make.rawValue, check: UInt64(list.entries.count))

    run.begin()
    for number in 0..<ListPlan.moveCount { move(list, plan.move(number)) }
    run.report(run.figure(ListPhase.moves.rawValue), check: order(list))
    run.begin()
    try context.save()
    run.report(run.figure(ListPhase.saveMoves.rawValue), check: try savedOrder(run))

    run.begin()
    move(list, plan.move(ListPlan.moveCount))
    try context.save()
    run.report(run.figure(ListPhase.saveMove.rawValue), check: try savedOrder(run))

    run.begin()
    context.delete(list)
    try context.save()
    let figure = run.figure(ListPhase.cascade.rawValue)
    run.report(figure, check: UInt64(try run.newContext().count(for: FetchRequest<StoredEntry>())))
    try run.close()
  }

  private static func make(_ plan: ListPlan, _ context: ManagedObjectContext) -> StoredList {
    let list = context.insert(StoredList.self)
    list.name = "A list of \(plan.count)"
    let entries = (0..<plan.count).map { number in
      let entry = context.insert(StoredEntry.self)
      entry.number = Int64(number)
      return entry
    }
    list.entries.append(contentsOf: entries)
    for (number, entry) in entries.enumerated() {
      for link in plan.links(of: number) { entry.links.insert(entries[link]) }
    }
    return list
  }

  private static func move(_ list: StoredList, _ move: ListPlan.Move) { list.entries.move(from: move.source, to: move.target) }

  private static func order(_ list: StoredList) -> UInt64 { ListPlan.checksum(list.entries.lazy.map(\.number)) }

  /// The order in a new context.
  private static func savedOrder(_ run: StoreRun) throws -> UInt64 {
    guard let list = try run.newContext().fetch(FetchRequest<StoredList>()).first else { throw MissingObject("the list") }
    return order(list)
  }
}
