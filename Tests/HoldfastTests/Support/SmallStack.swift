import Foundation

/// Runs a closure on a thread with a stack of 512 KiB, the smallest default for secondary threads.
func onSmallStack<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) throws -> Result {
  try onStack(byteCount: 512 << 10, body).result
}

/// Runs a closure on a thread with its own stack. Also returns the number of stack bytes that were written.
func onStack<Result: Sendable>(
  byteCount: Int, _ body: @escaping @Sendable () throws -> Result
) throws -> (result: Result, stackBytes: Int) {
  let stack = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 1 << 16)
  defer { stack.deallocate() }
  stack.initializeMemory(as: UInt8.self, repeating: 0xAA)
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  defer { pthread_attr_destroy(&attributes) }
  let answer = Answer()
  let work = Unmanaged.passRetained(Work { answer.result = Swift.Result { try body() } })
  var thread = pthread_t()
  guard let start = stack.baseAddress, pthread_attr_setstack(&attributes, start, byteCount) == 0,
    pthread_create(
      &thread, &attributes,
      {
        Unmanaged<Work>.fromOpaque($0!).takeRetainedValue().body(); return nil
      }, work.toOpaque()) == 0
  else { throw CocoaError(.featureUnsupported) }
  pthread_join(thread, nil)
  guard let result = try answer.result?.get() as? Result else { throw CocoaError(.featureUnsupported) }
  return (result, byteCount - (stack.firstIndex { $0 != 0xAA } ?? byteCount))
}

private final class Work {
  let body: () -> Void
  init(_ body: @escaping () -> Void) { self.body = body }
}

private final class Answer: @unchecked Sendable {  // because joining the thread orders the one write before the one read
  var result: Swift.Result<any Sendable, any Error>?
}
