#if Tracing
  import Holdfast
  import HoldfastMemoryStore
  import HoldfastStoreConformance
  import HoldfastStoreWrappers
  import InMemoryTracing
  import Testing
  import Tracing

  /// The spans of a tracing store.
  @Suite struct SpanTests {
    private let tracer = InMemoryTracer()

    private func open(_ base: any IncrementalStore = MemoryStore()) throws -> ManagedObjectContext {
      let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [AttributeDescription("name", .string)])])
      let store = TracingStore(base, system: "memory", tracer: tracer)
      return try ManagedObjectContext(
        coordinator: PersistentStoreCoordinator(model: model, store: StoreDescription(type: "traced") { store }))
    }

    @Test func eachRequestHasASpanBelowTheCurrentOne() throws {
      let context = try open()
      try tracer.withSpan("work") { _ in
        try context.insert(entityNamed: "Dog").setValue(.string("Secret"), forKey: "name")
        try context.save()
      }
      let spans = tracer.finishedSpans
      #expect(spans.map(\.operationName) == ["open", "reserveKeys Dog", "prepare Dog", "commit Dog", "work"])
      let work = try #require(spans.last)
      #expect(spans.dropFirst().dropLast().allSatisfy { $0.parentSpanID == work.spanID && $0.kind == .client })
      let commit = spans[3]
      #expect(commit.attributes.get("db.system.name") == .string("memory") && commit.attributes.get("db.collection.name") == .string("Dog"))
      #expect(
        commit.attributes.get("holdfast.requested_rows") == .int64(1) || commit.attributes.get("holdfast.requested_rows") == .int32(1))
      #expect(commit.errors.isEmpty && commit.status == nil)
    }

    @Test func aStoreMakesItsSpansBelowTheRequest() throws {
      let tracer = tracer
      final class Inner: ForwardingStore {
        let base: any IncrementalStore = MemoryStore()
        let tracer: InMemoryTracer
        init(_ tracer: InMemoryTracer) { self.tracer = tracer }
        func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
          try tracer.withSpan("POST") { _ in try base.reserveKeys(demands, options: options) }
        }
      }
      let context = try open(Inner(tracer))
      try context.insert(entityNamed: "Dog").setValue(.string("Rex"), forKey: "name")
      try context.save()
      let spans = tracer.finishedSpans
      let post = try #require(spans.first { $0.operationName == "POST" })
      #expect(post.parentSpanID == spans.first { $0.operationName == "reserveKeys Dog" }?.spanID)
    }

    @Test func aFailedRequestMarksItsSpan() throws {
      let faults = FaultInjectingStore(MemoryStore()), context = try open(faults)
      try context.insert(entityNamed: "Dog").setValue(.string("Rex"), forKey: "name")
      faults.fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test."))
      #expect(throws: (any Error).self) { try context.save() }
      let commit = try #require(tracer.finishedSpans.first { $0.operationName == "commit Dog" })
      #expect(commit.status?.code == .error && commit.errors.count == 1)
      #expect(commit.attributes.get("error.type") == .string("diskFull"))
    }
  }
#endif
