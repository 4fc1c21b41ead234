/// Runs requests within spans of a tracer.
package protocol RequestSpans: Sendable {
  /// Runs a request within a span.
  ///
  /// - Parameters:
  ///   - trace: The request, as it begins.
  ///   - body: Runs the request, and sets the trace to that of the ended request.
  func run<Answer>(_ trace: StoreTrace, _ body: (inout StoreTrace) throws -> Answer) throws -> Answer
}
