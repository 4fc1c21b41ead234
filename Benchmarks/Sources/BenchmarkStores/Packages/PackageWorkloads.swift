internal import BenchmarkData
internal import BenchmarkRunner
internal import Holdfast
internal import HoldfastStore

/// The workloads on packages.
///
/// | workload | measured interval |
/// |---|---|
/// | `import` | from opening to the last save |
/// | `load` | from opening until all attributes are read |
/// | `links` | from opening until all links are followed |
/// | `search` `traverse` | the requests, with an open store |
/// | `update` `delete` | from the fetch to the end of the save, with an open store |
///
/// Models are created before any clock starts, because an application has its model when it opens a store.
struct PackageWorkloads {
  let kind: StoreKind

  /// For a store that reads on demand: one process per phase.
  var separate: [Workload] {
    [
      workload("import", .makesStore) {
        try importAll($0)
        try $0.close()
      },
      workload("load", .readsStore) { run in
        let model = try PackageModel.make()
        try load(run) { try open($0, model) }
      },
      workload("links", .readsStore) { run in
        let model = try PackageModel.make()
        try links(run) { try open($0, model) }
      },
      workload("search", .readsStore) { try search($0, try open($0, PackageModel.make())) },
      workload("traverse", .readsStore) { try traverse($0, try open($0, PackageModel.make())) },
      workload("update", .changesStore) { try update($0, try open($0, PackageModel.make())) },
      workload("delete", .changesStore) { try delete($0, try open($0, PackageModel.make())) },
    ]
  }

  /// For an in-memory store: one process that imports everything. Each phase uses a new context.
  var together: [Workload] {
    [
      workload("READ", .needsNoFile) { run in
        let beginning = run.split()
        try importAll(run)
        try load(run, since: beginning, graph)
        try links(run, graph)
        try search(run, graph(run))
        try traverse(run, graph(run))
        try update(run, graph(run))
        try delete(run, graph(run))
      }
    ]
  }

  private func workload(_ name: String, _ use: Workload.StoreUse, _ body: @escaping @Sendable (StoreRun) throws -> Void) -> Workload {
    let kind = kind
    return Workload(name, .packages, use) { try body(StoreRun(kind, $0)) }
  }

  private func open(_ run: StoreRun, _ model: ManagedObjectModel) throws -> PackageGraph {
    PackageGraph(context: try run.open(model, PackageModel.classes))
  }

  private func graph(_ run: StoreRun) throws -> PackageGraph { PackageGraph(context: try run.newContext()) }

  // MARK: Phases

  private func importAll(_ run: StoreRun) throws {
    let index = try run.context.packages()
    try StoreFiles(run.context.path).remove()
    let model = try PackageModel.make()
    run.begin()
    var work = PackageImport(index, into: try open(run, model).context)
    let count = try work.run()
    run.report(PackagePhase.importing.rawValue, check: UInt64(count))
  }

  /// - Parameter beginning: The mark from which memory is counted. Defaults to now. An in-memory store keeps earlier data.
  private func load(_ run: StoreRun, since beginning: Mark? = nil, _ open: (StoreRun) throws -> PackageGraph) throws {
    run.begin()
    let graph = try open(run)
    let packages = try graph.all()
    let sum = graph.read(packages)
    var figure = run.figure(PackagePhase.load.rawValue)
    if let beginning { figure.heapDeltaBytes = run.figure("", since: beginning).heapDeltaBytes }
    withExtendedLifetime(packages) { run.report(figure, check: sum) }
  }

  private func links(_ run: StoreRun, _ open: (StoreRun) throws -> PackageGraph) throws {
    run.begin()
    let graph = try open(run)
    let packages = try graph.all()
    let sum = graph.followLinks(of: packages)
    withExtendedLifetime(packages) { run.report(PackagePhase.links.rawValue, check: sum) }
  }

  private func search(_ run: StoreRun, _ graph: PackageGraph) throws {
    let plan = try run.context.packagePlan()
    run.begin()
    run.report(PackagePhase.search.rawValue, check: try graph.search(plan.search))
  }

  private func traverse(_ run: StoreRun, _ graph: PackageGraph) throws {
    let plan = try run.context.packagePlan()
    run.begin()
    run.report(PackagePhase.traverse.rawValue, check: try graph.traverse(from: plan.samples))
  }

  private func update(_ run: StoreRun, _ graph: PackageGraph) throws {
    let plan = try run.context.packagePlan()
    run.begin()
    let packages = try graph.packages(ofSection: plan.updateSection), sum = graph.grow(packages)
    try graph.context.save()
    let figure = run.figure(PackagePhase.update.rawValue)
    // The objects have their new sizes also if the save did nothing.
    let expected = packages.reduce(0) { $0 + ($1.installedSize ?? 0) }
    let saved = try self.graph(run).totalInstalledSize(ofSection: plan.updateSection)
    if saved != expected { throw UnsavedValues("the sizes of \(packages.count) packages", saved: saved, expected: expected) }
    run.report(figure, check: sum)
  }

  /// Deletes a section's packages. The remaining links are counted in a new context, outside the measured interval.
  private func delete(_ run: StoreRun, _ graph: PackageGraph) throws {
    let plan = try run.context.packagePlan()
    run.begin()
    let packages = try graph.packages(ofSection: plan.deleteSection)
    for package in packages { graph.context.delete(package) }
    try graph.context.save()
    let figure = run.figure(PackagePhase.delete.rawValue)
    let remaining = try self.graph(run).linkCount()
    run.report(figure, check: PackageAnswers.deleted(packages.count, remainingLinks: remaining))
  }
}
