import HTTPService
import HTTPStore
import Holdfast

@Entity final class Note: ManagedObject {
  var title = ""
  var stars = 0
}

// The service, on a port that the system chooses.
let service = HTTPService(recordsRequests: true)
let (ports, started) = AsyncStream<Int>.makeStream()
let serving = Task { try await service.run { started.yield($0) } }

for await port in ports {
  // Contexts wait for the service on queues of their own, so that they block neither the main thread nor Swift's tasks.
  let store = StoreDescription.http(at: "http://127.0.0.1:\(port)/stores/notes")
  let container = try PersistentContainer(for: Note.self, store: store)
  try await container.performBackgroundTask { context in
    for (title, stars) in [("Buy milk", 1), ("Write a store", 5), ("Call Ada", 3)] {
      context.insert(Note.self) { ($0.title, $0.stars) = (title, stars) }
    }
    try context.save()
  }
  let best = try await container.performBackgroundTask { context in
    var request = FetchRequest<Note>(sortedBy: [.descending(\.stars)]) { $0.stars > 2 }
    request.fetchLimit = 1
    return try context.fetch(request).map(\.title)
  }
  print(best)  // ["Write a store"]
  for request in service.outages.takeReceived() { print(request.method, request.path) }
  break
}
serving.cancel()
