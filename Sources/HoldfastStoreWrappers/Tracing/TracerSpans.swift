#if Tracing
  public import HoldfastStore
  public import Tracing

  extension TracingStore {
    /// Wraps a store, and creates a span for each request. Requires the trait `Tracing`.
    ///
    /// The span is a child of the current span, and is itself the current span during the request. Requests that a store sends over a
    /// network while it answers become its children. The span's name is the operation and the entity, and its attributes are those of
    /// ``StoreTrace/attributes(system:)``.
    ///
    /// - Parameters:
    ///   - base: The store.
    ///   - system: The name of the store type, such as "sqlite".
    ///   - tracer: The tracer, such as `InstrumentationSystem.tracer`.
    ///   - receive: Receives each trace.
    public convenience init(
      _ base: any IncrementalStore, system: String, tracer: some Tracer, receive: @escaping @Sendable (StoreTrace) -> Void = { _ in }
    ) {
      self.init(base, spans: TracerSpans(tracer: tracer, system: system), receive: receive)
    }
  }

  private struct TracerSpans<SomeTracer: Tracer>: RequestSpans {
    let tracer: SomeTracer
    let system: String

    func run<Answer>(_ trace: StoreTrace, _ body: (inout StoreTrace) throws -> Answer) throws -> Answer {
      let name = [trace.operation.rawValue, trace.entity].compactMap { $0 }.joined(separator: " ")
      return try tracer.withSpan(name, ofKind: .client) { span in
        var ended = trace
        defer { describe(ended, in: span) }
        return try body(&ended)
      }
    }

    /// Sets the attributes. `withSpan` records the error and sets the status.
    private func describe(_ trace: StoreTrace, in span: SomeTracer.Span) {
      // The span has its own duration.
      for (name, value) in trace.attributes(system: system) where name != "holdfast.duration" {
        span.attributes[name] = value
      }
      span.attributes["db.response.returned_rows"] = trace.returnedCount
      span.attributes["holdfast.requested_rows"] = trace.requestedCount
    }
  }
#endif
