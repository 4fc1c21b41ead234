// swift-format-ignore-file
import HTTPService
import HTTPStore
import Holdfast

final class Note: ManagedObject {
  var stars: Int { get { self[0] } set { self[0] = newValue } }
  var title: String { get { self[1] } set { self[1] = newValue } }
  override class var properties: [PropertyBinding] {
    [.attribute("stars", \Note.stars, slot: 0), .attribute("title", \Note.title, slot: 1)]
  }
}

let model = try ManagedObjectModel(entities: [
  EntityDescription("Note", attributes: [.init("stars", .integer32), .init("title", .string)])
])

// The service, on a port that the system chooses.
let service = HTTPService(recordsRequests: true)
let (ports, started) = AsyncStream<Int>.makeStream()
let serving = Task { try await service.run { started.yield($0) } }

for await port in ports {
  // Contexts wait for the service on queues of their own, so that they block neither the main thread nor Swift's tasks.
  let store = StoreDescription.http(at: "http://127.0.0.1:\(port)/stores/notes")
  let container = try PersistentContainer(model: model, classes: [Note.self], store: store)
  try await container.performBackgroundTask { context in
    for (title, stars) in [("Buy milk", 1), ("Write a store", 5), ("Call Ada", 3)] {
      let note = context.insert(Note.self)
      (note.title, note.stars) = (title, stars)
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
