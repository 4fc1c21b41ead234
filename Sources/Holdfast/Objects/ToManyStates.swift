/// The states of an object's relationships and the values of its transient attributes, in one block of memory.
///
/// ```text
///  -linkCount ..< 0       0 ..< toManyCount      after the states
/// ┌──────────────────────┬──────────────────────┬──────────────────────┐
/// │ states of transient  │ states of to-many    │ values of transient  │
/// │ relationships        │ relationships        │ attributes           │
/// └──────────────────────┴──────────────────────┴──────────────────────┘
///                        ▲ base
/// ```
///
/// Without to-many relationships, one unused state precedes the values. The object that allocates a block deallocates it. It belongs to the pool
/// of the object's context.
struct ToManyStates {
  private let base: UnsafeMutablePointer<ToManyState>

  /// Allocates the block of an object.
  ///
  /// - Parameter isNew: Whether the object was never saved, so that its relationships are known to be empty.
  init(_ plan: GraphPlan.EntityPlan, isNew: Bool, in pool: BlockPool) {
    let count = max(1, plan.toManyCount), linkCount = plan.transientLinkCount
    base = pool.allocate(ToManyStates.byteCount(plan)).assumingMemoryBound(to: ToManyState.self) + linkCount
    base.initialize(repeating: ToManyState(), count: count)
    if isNew { for index in 0..<plan.toManyCount { base[index].base = .new } }
    for index in -linkCount..<0 {
      (base + index).initialize(to: ToManyState())
      base[index].base = .new
    }
    if plan.transientCount > 0 { values(plan).initialize(repeating: nil, count: plan.transientCount) }
  }

  /// Destroys the states of to-many relationships and the values, and releases the memory. The caller first destroys or parks the states of
  /// transient relationships.
  func deallocate(_ plan: GraphPlan.EntityPlan, in pool: BlockPool) {
    for index in 0..<plan.toManyCount { base[index].destroy() }
    if plan.transientCount > 0 { values(plan).deinitialize(count: plan.transientCount) }
    pool.deallocate(base - plan.transientLinkCount, ToManyStates.byteCount(plan))
  }

  /// The state of a relationship. The index of a transient one is negative.
  @inline(__always) subscript(index: Int) -> ToManyState {
    unsafeAddress { UnsafePointer(base + index) }
    nonmutating unsafeMutableAddress { base + index }
  }

  /// The value of a transient attribute.
  subscript(transient index: Int, plan: GraphPlan.EntityPlan) -> Any? {
    get { values(plan)[index] }
    nonmutating set { values(plan)[index] = newValue }
  }

  private func values(_ plan: GraphPlan.EntityPlan) -> UnsafeMutablePointer<Any?> {
    UnsafeMutableRawPointer(base + max(1, plan.toManyCount)).assumingMemoryBound(to: Any?.self)
  }

  private static func byteCount(_ plan: GraphPlan.EntityPlan) -> Int {
    (plan.transientLinkCount + max(1, plan.toManyCount)) * MemoryLayout<ToManyState>.stride
      + plan.transientCount * MemoryLayout<Any?>.stride
  }
}
